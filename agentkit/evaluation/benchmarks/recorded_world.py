"""A world of recorded responses: tools that answer the calls that were once made, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

from agentkit.errors import ModelRetry
from agentkit.evolution.trajectories import Trajectory
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics import CanonicalCall, canonical_calls
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

NOT_RECORDED = (
    "there is no answer to these arguments; check each of them against the request and the "
    "results so far"
)


class RecordedWorld:
    """Tools that replay the responses of a trajectory.

    A call is answered when it is equal to a recorded one under the tool's schema
    (``agentkit.metrics.canonical_calls``). One that was recorded several times is answered in the
    order of the records, and from then on with the last. Any other call is told that there is no
    answer, and the model may try again.

    Args:
        trajectory: The recorded calls and responses.
        definitions: The tools that there are, recorded or not.
    """

    def __init__(self, trajectory: Trajectory, definitions: Iterable[ToolDefinition]) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._records: dict[CanonicalCall, list[int]] = {}
        self._trajectory = trajectory
        self._answered: set[int] = set()
        self._lock = Lock()
        for at, step in enumerate(trajectory.steps):
            key = self._key(step.tool, trajectory.arguments(at))
            self._records.setdefault(key, []).append(at)

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to the records."""
        return [
            Tool(definition=definition, function=self._answering(name))
            for name, definition in self._definitions.items()
        ]

    def state(self) -> JsonObject:
        """Which recorded calls were made by now: ``{"made": {"1 find_port": true}}``."""
        steps = self._trajectory.steps
        return {"made": {f"{at + 1} {steps[at].tool}": True for at in sorted(self._answered)}}

    def _answering(self, name: str) -> Callable[..., Any]:
        def answer(**arguments: Any) -> Any:
            return self._answer(name, arguments)

        return answer

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        records = self._records.get(self._key(name, arguments))
        if records is None:
            raise ModelRetry(NOT_RECORDED)
        with self._lock:  # calls of one message run at the same time, each in a thread
            at = next((one for one in records if one not in self._answered), records[-1])
            self._answered.add(at)
        return self._trajectory.steps[at].result

    def _key(self, name: str, arguments: Mapping[str, Any]) -> CanonicalCall:
        call = ToolCall(call_id="", name=name, arguments=arguments)
        return canonical_calls([call], [self._definitions[name]])[0]
