"""Running calls again on recorded answers: the proof that composites change nothing but the count.

Every primitive is answered from the trajectory's own records; composites are run by the
interpreter. So a composite that calls a primitive with other arguments, or once too often, fails
here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.composites.composite import composite_tool
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import AgentKitError, ToolFailed
from agentkit.evolution.mining.trajectory import Flow, Source, Trajectory, at_path, cast_value
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeCall:
    """One call of a primitive.

    Attributes:
        tool: Its name.
        arguments: What it got, as JSON with sorted keys.
        result: What it answered, as JSON with sorted keys.
    """

    tool: str
    arguments: str
    result: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """What came of running a rewritten trajectory on the records of the original one.

    Attributes:
        calls: Calls that the caller made, composites counting once.
        made: Calls of primitives, in the order in which they ran.
        same_calls: Whether these are the original calls, each as often as there.
        same_results: Whether each call that the caller made returned what the records say.
        error: Why it stopped early; empty when it did not.
    """

    calls: int
    made: tuple[MadeCall, ...]
    same_calls: bool
    same_results: bool
    error: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether it ran to its end with the same calls and the same results."""
        return self.same_calls and self.same_results and not self.error


async def replay(
    original: Trajectory,
    rewritten: Trajectory,
    tools: Mapping[str, ToolDefinition],
    *,
    limits: CompositeLimits | None = None,
) -> Replay:
    """Run a rewritten trajectory, answering primitives from the records of the original.

    Args:
        original: The calls with their recorded results.
        rewritten: The same with composites.
        tools: Definitions of all tools that ``rewritten`` calls, of composites and what they call.
            A call that was recorded several times is answered in the order of the records.
        limits: Caps on the composites' runs.
    """
    desk = _Desk(original, tools, limits)
    results: list[Any] = []
    error = ""
    try:
        for step in rewritten.steps:
            arguments = {name: _read(source, results) for name, source in step.sources.items()}
            results.append(await desk.run(step.tool, arguments))
    except (AgentKitError, ToolFailed, LookupError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    expected = [step.result for step in rewritten.steps]
    return Replay(
        calls=len(rewritten.steps),
        made=tuple(desk.made),
        same_calls=sorted(map(_text, desk.made)) == sorted(map(_text, calls_as_text(original))),
        same_results=_json(results) == _json(expected),
        error=error,
    )


def calls_as_text(trajectory: Trajectory) -> tuple[MadeCall, ...]:
    """The calls of a trajectory with their answers."""
    return tuple(
        MadeCall(
            tool=step.tool,
            arguments=_json(trajectory.arguments(position)),
            result=_json(step.result),
        )
        for position, step in enumerate(trajectory.steps)
    )


class _Desk:
    """Answers calls from records, and keeps a list of them."""

    def __init__(
        self,
        original: Trajectory,
        tools: Mapping[str, ToolDefinition],
        limits: CompositeLimits | None,
    ) -> None:
        self.made: list[MadeCall] = []
        self._definitions = tools
        self._limits = limits
        self._tools: dict[str, Tool] = {}
        self._answers: dict[tuple[str, str], list[Any]] = {}
        for call, step in zip(calls_as_text(original), original.steps, strict=True):
            self._answers.setdefault((call.tool, call.arguments), []).append(step.result)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        tool = self.tool(name)
        result = tool(**arguments)
        return await result if tool.is_async else result

    def tool(self, name: str) -> Tool:
        if name not in self._tools:
            definition = self._definitions[name]
            if definition.is_composite:
                children = {c.name: self.tool(c.name) for c in definition.signature.children}
                made = composite_tool(definition, children, limits=self._limits)
            else:
                made = Tool(definition=definition, function=self._answering(name), is_async=True)
            self._tools[name] = made
        return self._tools[name]

    def _answering(self, name: str) -> Callable[..., Any]:
        # Async without waiting for anything: the answers come one by one, in a fixed order.
        async def answer(**arguments: Any) -> Any:
            key = (name, _json(arguments))
            waiting = self._answers.get(key)
            if not waiting:
                raise ToolFailed(f"no recorded answer of {name} for {key[1][:200]}")
            result = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.made.append(MadeCall(tool=name, arguments=key[1], result=_json(result)))
            return result

        return answer


def _read(source: Source, results: Sequence[Any]) -> Any:
    if not isinstance(source, Flow):
        return source.value
    value = at_path(results[source.step], source.path)
    return cast_value(value, source.cast) if source.cast else value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _text(call: MadeCall) -> tuple[str, str, str]:
    return (call.tool, call.arguments, call.result)
