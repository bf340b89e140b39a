"""Composites proposed by a model from solved tasks (CoCoDA, Algorithm 1, lines 7 and 29)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.composites.language import is_dotted, written
from agentkit.episodes import Episode
from agentkit.episodes.naming import in_library_names
from agentkit.errors import SourceProblem, UsageError
from agentkit.evolution.insertion.outcome import Rejected
from agentkit.evolution.proposals.composites.prompt import (
    INSTRUCTIONS,
    code_blocks,
    proposal_prompt,
)
from agentkit.evolution.proposals.composites.repair import Repaired, Review, repaired
from agentkit.library.library import Library
from agentkit.messages import SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelSettings
from agentkit.tools.definition import ToolDefinition

TEACHER_SETTINGS = ModelSettings(temperature=0.2, top_p=0.95, max_tokens=4096)
"""The paper's settings for prompts other than rollouts (Appendix D and Table 4)."""

_LEAST_CALLS = 2
_MOST_TOOLS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class CompositeCandidate:
    """A composite that a model proposed. Only ``ToolManager.insert`` decides about it.

    Attributes:
        source: The last text that the model wrote.
        definition: What it says; None when the model never got it into the language.
        problems: What is wrong with the text.
        rejection: What a review said last, when one was asked for.
        evidence: Ids of the episodes that it was made from.
        attempts: Texts that the model wrote for it.
        usage: What the repairs of this candidate cost.
        proposal_usage: What the request cost that all candidates of the same episode share.
    """

    source: str
    definition: ToolDefinition | None
    problems: tuple[SourceProblem, ...] = ()
    rejection: Rejected | None = None
    evidence: tuple[str, ...] = ()
    attempts: int = 1
    usage: Usage = field(default_factory=Usage)
    proposal_usage: Usage = field(default_factory=Usage)


async def propose_composites(
    episodes: Episode | Iterable[Episode],
    library: Library,
    model: ChatModel,
    *,
    max_repairs: int = 3,
    review: Review | None = None,
    settings: ModelSettings = TEACHER_SETTINGS,
    limits: CompositeLimits = CompositeLimits(),  # noqa: B008 - frozen
) -> tuple[CompositeCandidate, ...]:
    """Ask a model which steps of solved tasks are worth a tool of their own.

    Each episode is one request; each function in the answer is parsed, and sent back with what is
    wrong, where, and what to write instead, until it is in the language. Text is never run.

    Args:
        episodes: Tasks that are known to be solved; those with fewer than two successful calls
            of tools in the library have nothing to compose and are left out.
        library: What a composite may call.
        model: The teacher.
        max_repairs: Most repairs of one function.
        review: Also try each function, such as ``ToolManager.review``, and send back what that
            shows.
        settings: How the teacher generates.
        limits: Caps on the text.

    Returns:
        Every function that was proposed, sound or not, with its reasons.

    Raises:
        ModelError: The model could not answer.
        UsageError: ``max_repairs`` is negative.
    """
    if max_repairs < 0:
        raise UsageError(f"max_repairs must be 0 or more, got {max_repairs}")
    given = (episodes,) if isinstance(episodes, Episode) else episodes
    read = partial(compose, tools=library.tools, limits=limits)
    candidates: list[CompositeCandidate] = []
    for episode in map(in_library_names, given):
        request = _request(episode, library, settings)
        if request is None:
            continue
        response = await model.complete(request)
        for source in dict.fromkeys(code_blocks(response.message.text)):
            end = await repaired(
                source, request, model, compose=read, review=review, max_repairs=max_repairs
            )
            candidates.append(_candidate(end, episode, response.usage))
    return tuple(candidates)


def _candidate(end: Repaired, episode: Episode, proposal: Usage) -> CompositeCandidate:
    return CompositeCandidate(
        source=end.source,
        definition=end.definition,
        problems=end.problems,
        rejection=end.rejection,
        evidence=(episode.episode_id,),
        attempts=end.attempts,
        usage=end.usage,
        proposal_usage=proposal,
    )


def _request(episode: Episode, library: Library, settings: ModelSettings) -> ModelRequest | None:
    succeeded = [
        result.name
        for turn in episode.turns
        for result in turn.results
        if result.status == "ok" and result.name in library
    ]
    if len(succeeded) < _LEAST_CALLS:
        return None
    tools = _shown_tools(dict.fromkeys(succeeded), library)
    names = {tool.name: _spelled(tool.name) for tool in tools}
    prompt = proposal_prompt(episode, tools, names)
    messages = (SystemMessage(text=INSTRUCTIONS), UserMessage(text=prompt))
    return ModelRequest(messages=messages, settings=settings)


def _shown_tools(called: Iterable[str], library: Library) -> tuple[ToolDefinition, ...]:
    """The tools that the task called, and those made of them, as far as there is room."""
    used = [library[name].definition for name in called]
    names = {definition.name for definition in used}
    made_of_them = [
        definition
        for definition in library.definitions
        if definition.name not in names
        and names.intersection(child.name for child in definition.signature.children)
    ]
    return tuple([*used, *made_of_them][:_MOST_TOOLS])


def _spelled(name: str) -> str:
    """How the tool is called in the text of a composite."""
    return name if is_dotted(name) else written(name)
