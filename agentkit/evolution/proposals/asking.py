"""Asking a model about one tool, and holding its answer against the episodes that it was shown."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.diagnosis.findings import steps_of
from agentkit.episodes import Episode
from agentkit.evolution.proposals.generalising import generalises, instance_values
from agentkit.evolution.proposals.prompting import Prompt
from agentkit.evolution.proposals.proposal import Proposal, Stream, UnreadableProposal
from agentkit.evolution.proposals.proposer import Suggestion
from agentkit.evolution.proposals.reading import Question, read_answer
from agentkit.evolution.proposals.stated import stated_values
from agentkit.evolution.validation.report import Check, ProposedChange
from agentkit.library.library import Library
from agentkit.models.base import ChatModel, ModelSettings

_LONGEST_KEPT = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a model is asked about.

    Attributes:
        tool: The tool.
        stream: Where the answer will come from.
        episodes: What it is shown.
        reason: Why it is asked.
    """

    tool: str
    stream: Stream
    episodes: tuple[Episode, ...]
    reason: str


async def ask(
    asked: Asked,
    library: Library,
    model: ChatModel,
    *,
    prompt: Prompt,
    shown: str,
    settings: ModelSettings,
) -> tuple[Suggestion, ...]:
    """What a model suggests for one tool.

    A suggestion whose words repeat values of the episodes is no proposal: it comes back as an
    ``UnreadableProposal`` with the values that it repeats.

    Raises:
        ModelError: The model could not answer.
    """
    definition = library[asked.tool].definition
    response = await model.complete(prompt.request(definition, shown, settings=settings))
    question = Question(
        library=library,
        stream=asked.stream,
        author=prompt.author(model),
        tools=frozenset({asked.tool}),
        reason=asked.reason,
        evidence=tuple(episode.episode_id for episode in asked.episodes),
    )
    found = read_answer(response.message.text, question)
    return held_against(found, asked.episodes, library, text=response.message.text)


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
