"""Filling in the results of calls that waited for somebody outside the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agentkit.agent.executor import Executor
from agentkit.agent.types import Approval, Decision, deferred_calls
from agentkit.episodes import Episode, Turn
from agentkit.errors import UsageError
from agentkit.messages import ToolCall, ToolResult, Usage
from agentkit.tools.encoding import encode_result
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What is known now of the calls that a run waited for.

    Attributes:
        episode: The run; it stopped as ``deferred``.
        approvals: Decisions by call id; an approved call is still to be run.
        values: Results by call id.

    Raises:
        UsageError: Nothing waits, a waiting call got no answer, or an id is unknown.
    """

    episode: Episode
    approvals: Mapping[str, Decision]
    values: Mapping[str, object]

    def __post_init__(self) -> None:
        given = self.approvals.keys() | self.values.keys()
        _check_answers(self.episode, deferred_calls(self.episode), given)

    async def turn(self, executor: Executor) -> Turn:
        """The waiting turn with its results.

        Args:
            executor: Runs approved calls; its ``approve`` is replaced by the decisions.
        """

        def decide(call: ToolCall, tool: Tool) -> Decision:  # noqa: ARG001 - an Approver gets both
            return self.approvals.get(call.call_id, Approval(approved=False))

        executor.approve = decide
        waiting = deferred_calls(self.episode)
        executor.remember([*self._before, *self._given])
        await executor.execute([call for call in waiting if call.call_id not in self.values])
        return self.so_far(executor)

    def so_far(self, executor: Executor) -> Turn:
        """The turn with those results that there are, also where running a call was broken off."""
        known = [*self._before, *self._given, *executor.finished]
        results = {result.call_id: result for result in known}
        turn = self.episode.turns[-1]
        calls = [call.call_id for call in turn.message.tool_calls]
        return replace(
            turn,
            results=tuple(results[call_id] for call_id in calls if call_id in results),
            usage=Usage(),  # the waiting run has paid for it
            seconds=0.0,
            model_seconds=0.0,
        )

    @property
    def _before(self) -> Sequence[ToolResult]:
        results = self.episode.turns[-1].results
        return [result for result in results if result.status != "deferred"]

    @cached_property
    def _given(self) -> Sequence[ToolResult]:
        """Results that were found outside this process."""
        waiting = deferred_calls(self.episode)
        return [
            _answered(call, self.values[call.call_id])
            for call in waiting
            if call.call_id in self.values
        ]


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
