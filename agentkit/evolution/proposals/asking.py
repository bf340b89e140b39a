"""Asking a model about one tool, and holding its answer against the episodes that it was shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentkit.diagnosis.findings import steps_of
from agentkit.episodes import Episode
from agentkit.errors import ModelError
from agentkit.evolution.proposals.block_schema import block_schema
from agentkit.evolution.proposals.blocks import CLOSING, OPENING
from agentkit.evolution.proposals.generalising import generalises, instance_values
from agentkit.evolution.proposals.prompting import Prompt
from agentkit.evolution.proposals.proposal import Proposal, Stream, UnreadableProposal
from agentkit.evolution.proposals.proposer import ProposerInterruptedError, Suggestion
from agentkit.evolution.proposals.reading import Question, read_answer
from agentkit.evolution.proposals.stated import stated_values
from agentkit.evolution.validation.report import Check, ProposedChange
from agentkit.library.library import Library
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.tools.definition import ToolDefinition

_LONGEST_KEPT = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a model is asked about.

    Attributes:
        tool: The tool.
        stream: Where the answer will come from.
        episodes: What it is shown.
        shown: These episodes in words.
        reason: Why it is asked.
    """

    tool: str
    stream: Stream
    episodes: tuple[Episode, ...]
    shown: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How a model is asked.

    Attributes:
        model: The model.
        prompt: What it is asked with.
        settings: How it generates.
        structured: Whether its answer is held to the schema of a block.
    """

    model: ChatModel
    prompt: Prompt
    settings: ModelSettings
    structured: bool = False


async def ask_each(
    questions: Iterable[Asked],
    library: Library,
    asking: Asking,
    *,
    before: Iterable[Suggestion] = (),
) -> list[Suggestion]:
    """What was suggested before, and what a model suggests about one tool after another.

    Raises:
        ModelError: The model failed before anything was suggested.
        ProposerInterruptedError: It failed later; the error holds what there was by then.
    """
    found = list(before)
    for asked in questions:
        try:
            found += await ask(asked, library, asking)
        except ModelError as error:
            if not found:
                raise
            raise ProposerInterruptedError(str(error), found=found) from error
    return found


async def ask(asked: Asked, library: Library, asking: Asking) -> tuple[Suggestion, ...]:
    """What a model suggests for one tool.

    A suggestion whose words repeat values of the episodes is no proposal: it comes back as an
    ``UnreadableProposal`` with the values that it repeats.

    Raises:
        ModelError: The model could not answer.
    """
    definition, prompt = library[asked.tool].definition, asking.prompt
    schema = block_schema(definition) if asking.structured else None
    request = prompt.request(
        definition, asked.shown, settings=asking.settings, output_schema=schema
    )
    response = await asking.model.complete(request)
    text = response.message.text
    if asking.structured and OPENING not in text:
        text = f"{OPENING}{text}{CLOSING}"
    question = Question(
        library=library,
        stream=asked.stream,
        author=prompt.author(asking.model),
        tools=frozenset({asked.tool}),
        reason=asked.reason,
        evidence=tuple(episode.episode_id for episode in asked.episodes),
    )
    found = read_answer(text, question)
    if asking.structured:  # whoever has to answer with a block says NOTHING by changing nothing
        found = tuple(one for one in found if not _says_nothing(one, definition))
    return held_against(found, asked.episodes, library, text=text)


def _says_nothing(suggestion: Suggestion, definition: ToolDefinition) -> bool:
    return isinstance(suggestion, Proposal) and suggestion.candidate == definition


def held_against(
    found: tuple[Suggestion, ...], episodes: tuple[Episode, ...], library: Library, *, text: str
) -> tuple[Suggestion, ...]:
    """The suggestions, those that repeat values of the episodes as unreadable ones."""
    steps = [step for e in episodes for turn in steps_of(e, library) for step in turn]
    own_words = [step.failure.rule for step in steps if step.failure is not None]
    check = generalises(instance_values(episodes), stated=stated_values(own_words))
    return tuple(
        one if isinstance(one, UnreadableProposal) else _judged(one, library, check, text)
        for one in found
    )


def _judged(proposal: Proposal, library: Library, check: Check, text: str) -> Suggestion:
    base = library[proposal.tool_name].definition
    change = ProposedChange(base=base, candidate=proposal.candidate, library=library)
    failed = tuple(check(change))
    if not failed:
        return proposal
    return UnreadableProposal(
        author=proposal.author,
        stream=proposal.stream,
        tool_name=proposal.tool_name,
        text=text[:_LONGEST_KEPT],
        failed=failed,
    )
