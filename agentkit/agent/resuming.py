"""Filling in the results of calls that waited for somebody outside the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentkit.agent.approval import Approval, Decision
from agentkit.agent.executor import Executor
from agentkit.agent.result import deferred_calls
from agentkit.episodes import Episode, Turn
from agentkit.errors import UsageError
from agentkit.messages import ToolCall, ToolResult, Usage
from agentkit.tools.encoding import encode_result
from agentkit.tools.tool import Tool


async def answered_turn(
    episode: Episode,
    *,
    approvals: Mapping[str, Decision],
    values: Mapping[str, object],
    executor: Executor,
) -> Turn:
    """The waiting turn of ``episode`` with the results that are known now.

    Args:
        episode: A run that stopped as ``deferred``.
        approvals: Decisions by call id; approved calls are run by ``executor``.
        values: Results by call id.
        executor: Runs approved calls; its ``approve`` is replaced by ``approvals``.

    Raises:
        UsageError: Nothing waits, a waiting call got no answer, or an id is unknown.
    """
    waiting = deferred_calls(episode)
    _check_answers(episode, waiting, approvals.keys() | values.keys())

    def decide(call: ToolCall, tool: Tool) -> Decision:  # noqa: ARG001 - an Approver gets both
        return approvals.get(call.call_id, Approval(approved=False))

    executor.approve = decide
    last = episode.turns[-1]
    given = [_answered(call, values[call.call_id]) for call in waiting if call.call_id in values]
    executor.remember([*last.results, *given])
    decided = [call for call in waiting if call.call_id not in values]
    known = [*given, *await executor.execute(decided)]
    results = {result.call_id: result for result in known}
    return replace(
        last,
        results=tuple(results.get(result.call_id, result) for result in last.results),
        usage=Usage(),  # the waiting run has paid for it
        seconds=0.0,
        model_seconds=0.0,
    )


def _check_answers(episode: Episode, waiting: tuple[ToolCall, ...], given: set[str]) -> None:
    ids = {call.call_id for call in waiting}
    if not ids:
        raise UsageError(
            f"episode {episode.episode_id} stopped as {episode.stop_reason!r}; no call waits in it"
        )
    if missing := [call for call in waiting if call.call_id not in given]:
        calls = ", ".join(f"{call.call_id} ({call.name})" for call in missing)
        raise UsageError(
            f"these calls still wait: {calls}; give each one a decision in approvals= "
            "or a result in values="
        )
    if unknown := sorted(given - ids):
        raise UsageError(f"no call waits under {unknown}; waiting are {sorted(ids)}")


def _answered(call: ToolCall, value: object) -> ToolResult:
    data, text = encode_result(value)
    return ToolResult(call_id=call.call_id, name=call.name, status="ok", value=data, text=text)
