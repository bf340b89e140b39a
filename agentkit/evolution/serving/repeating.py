"""What of a run is repeated by a shadow run, and what both sides are recorded as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentkit.agent.session import new_episode_id, unrouted
from agentkit.agent.types import FinishedRun
from agentkit.episodes import Episode, Turn
from agentkit.episodes.labels import ARM, CANDIDATE, EXPERIMENT, SHADOW_OF, VIEW_OF
from agentkit.evolution.serving.experiments import Experiment
from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.models.base import ModelRequest
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """One request of a run that is asked once more.

    Attributes:
        turn: Index of the run's turn that it led to.
        request: As the model had it.
    """

    turn: int
    request: ModelRequest


def repeats(run: FinishedRun, tool_name: str, *, most: int) -> tuple[Repeat, ...]:
    """Those of a run's first requests that offered the tool under trial; the others are the same.

    The conversation before each is that of the run itself, with the results that its calls really
    had. So one request never depends on what the candidate proposed before.

    Args:
        run: A run that began with a request.
        tool_name: The tool.
        most: How many of the run's first requests are looked at.
    """
    if run.request is None:
        return ()
    return tuple(
        one
        for one in _requests(run.request, run.result.episode.turns[:most], run.library)
        if any(definition.name == tool_name for definition in one.request.tools)
    )


def _requests(first: ModelRequest, turns: Sequence[Turn], library: Library) -> Iterator[Repeat]:
    """The request before each turn."""
    request = first
    for place, turn in enumerate(turns):
        yield Repeat(turn=place, request=request)
        said = Episode(episode_id="", request="", turns=(turn,)).messages()
        request = replace(
            request,
            messages=(*request.messages, *said),
            tools=_grown(request.tools, turn, library),
            tool_choice="auto" if request.tool_choice == "required" else request.tool_choice,
        )


def _grown(
    tools: tuple[ToolDefinition, ...], turn: Turn, library: Library
) -> tuple[ToolDefinition, ...]:
    """The tools after a turn: the model's searches, and calls of tools on cards, add some."""
    known = {definition.name for definition in tools}
    wanted = [name for search in turn.searches for name in search.offered]
    wanted += [result.name for result in turn.results if result.status == "ok"]
    added = [name for name in dict.fromkeys(wanted) if name in library and name not in known]
    return (*tools, *(library[name].definition for name in added)) if added else tools


def with_candidate(repeat: Repeat, before: Library, after: Library) -> ModelRequest:
    """The request with the definitions of another library.

    Libraries that are offered whole give the same tuple each time, as adapters like it.
    """
    request = repeat.request
    if request.tools is before.definitions:
        return replace(request, tools=after.definitions)
    tools = (after[one.name].definition if one.name in before else one for one in request.tools)
    return replace(request, tools=tuple(tools))


def view(
    original: Episode,
    turns: Sequence[Turn],
    experiment: Experiment,
    *,
    view_of: str = "",
    shadow_of: str = "",
    error: str | None = None,
) -> Episode:
    """One side of a shadow run as an episode: the turns of the repeated requests and no more.

    Both sides are recorded alike, so that one verifier judges like with like. The side of the
    original has the label ``view_of`` and no arm: as a control it is known by the candidate's label
    ``shadow_of``, which names it.

    Args:
        original: The episode that is repeated.
        turns: What this side answered to each repeated request.
        experiment: What is being tried.
        view_of: For the original's side: its id.
        shadow_of: For the candidate's side: the id of the other one.
        error: What the model failed of.
    """
    labels: Mapping[str, str] = {VIEW_OF: view_of}
    if shadow_of:
        digest = experiment.candidate.digest
        labels = {SHADOW_OF: shadow_of, ARM: "candidate", CANDIDATE: digest}
    last = turns[-1].message if turns else None
    answered = last is not None and not last.tool_calls
    return Episode(
        episode_id=new_episode_id(),
        request=original.request,
        turns=tuple(turns),
        stop_reason="finished" if error is None else "error",
        output=last.text if answered and last is not None else None,
        model=original.model,
        library_version=original.library_version,
        session_id=original.session_id,
        history_length=original.history_length,
        usage=sum((turn.usage for turn in turns), Usage()),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=sum(turn.seconds for turn in turns),
        error=error,
        metadata={
            **unrouted(original.metadata),
            EXPERIMENT: experiment.proposal_id,
            **labels,
        },
    )
