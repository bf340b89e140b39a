"""From episodes to trajectories: which episodes count, and what of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.late_verdicts import with_late_verdicts
from agentkit.episodes.naming import in_library_names
from agentkit.evolution.mining.dataflow import (
    Dataflow,
    FlowRules,
    calls_of,
    find_flows,
    is_specific,
)
from agentkit.evolution.mining.trajectory import Trajectory, parts_of
from agentkit.messages import JsonObject


def is_success(episode: Episode) -> bool:
    """Whether an episode went well: its verdict says so, or, without one, it looks so.

    Without a verdict an episode went well when it finished and none of its calls failed.
    """
    if episode.verdict is not None:
        return episode.verdict.passed
    return episode.stop_reason == "finished" and all(r.status == "ok" for r in episode.results)


def trajectories_of(
    episodes: Iterable[Episode],
    *,
    flows: FlowRules = FlowRules(),  # noqa: B008 - frozen
    failed_too: bool = False,
) -> Dataflow:
    """The calls of successful episodes, with the flows of data between them.

    Calls that failed, were denied or wait for an answer are left out; so are episodes without any
    other call, and records of shadow runs and views, which tell of nothing that a user saw.

    Args:
        episodes: What happened; a verdict that came later counts in place of the episode's own.
        flows: When equal values count as a flow of data.
        failed_too: Take episodes that did not go well, too.
    """
    served = map(in_library_names, with_late_verdicts(episodes))
    taken = (episode for episode in served if failed_too or is_success(episode))
    found = [trajectory for trajectory in map(_trajectory, taken) if trajectory.steps]
    return find_flows(found, flows)


def _trajectory(episode: Episode) -> Trajectory:
    calls = list(_succeeded(episode))
    trajectory = calls_of(episode.episode_id, calls, request=episode.request)
    shown = episode.output if isinstance(episode.output, str) else json.dumps(episode.output)
    asked = episode.request.casefold()
    answered = frozenset(
        position
        for position, (_, _, result) in enumerate(calls)
        if _shows(shown.casefold(), result, asked)
    )
    return Trajectory(
        trajectory_id=trajectory.trajectory_id,
        steps=trajectory.steps,
        request=trajectory.request,
        answered=answered,
    )


def _succeeded(episode: Episode) -> Iterator[tuple[str, JsonObject, Any]]:
    for turn in episode.turns:
        results = {result.call_id: result for result in turn.results}
        for call in turn.message.tool_calls:
            result = results.get(call.call_id)
            if result is not None and result.status == "ok":
                yield call.name, call.arguments, result.value


def _shows(answer: str, result: Any, asked: str) -> bool:
    """Whether an answer holds something of a result that was not in the request already."""
    for _, value in parts_of(result):
        if is_specific(value) and isinstance(value, str | int | float):
            text = str(value).casefold()
            if text in answer and text not in asked:
                return True
    return False
