"""Calls inside composites, told after the composite has ended.

A composite is interpreted; most of its calls are over in microseconds, and whether they are worth a
span is known at its end. So they are written down while it runs and told afterwards, with the times
that they had and each below the composite that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.tools.tool import Tool
from agentkit.tracing.guarded import OpenSpan, Tracing
from agentkit.tracing.operations import ChildOperation, ChildResult

if TYPE_CHECKING:
    from agentkit.tools.composite.interpreter.trace import TracedCall

Told: TypeAlias = "Callable[[TracedCall], None]"


def traceable(tool: Tool) -> Callable[[Told], Callable[..., Any]] | None:
    """What makes the tool's function tell of the calls that it makes; a composite can do that."""
    if not tool.definition.is_composite:
        return None
    traced: Callable[[Told], Callable[..., Any]] | None = getattr(tool.function, "traced", None)
    return traced


class ChildCalls:
    """The calls that one call of a composite made.

    Args:
        call_id: Id of the call of the composite.
        library: The pinned snapshot.
    """

    def __init__(self, call_id: str, library: Library) -> None:
        self._call_id = call_id
        self._library = library
        self._calls: list[TracedCall] = []

    def add(self, call: TracedCall) -> None:
        """Write down a call that is over; may be called in the thread of the composite."""
        self._calls.append(call)

    def tell(self, tracing: Tracing, parent: OpenSpan) -> None:
        """Tell of them in the order in which they began, each below the one that made it."""
        spans: dict[tuple[int, ...], OpenSpan] = {}
        for call in sorted(self._calls, key=lambda call: call.sequence):
            spans[call.sequence] = tracing.tell(
                self._operation(call),
                None if call.error is not None else ChildResult(value=call.result),
                error=call.error,
                began_ns=call.began_ns,
                ended_ns=call.ended_ns,
                parent=_nearest(spans, call.sequence) or parent,
            )

    def _operation(self, call: TracedCall) -> ChildOperation:
        place = ".".join(map(str, call.sequence))
        return ChildOperation(
            call=ToolCall(
                call_id=f"{self._call_id}/{place}", name=call.name, arguments=call.arguments
            ),
            tool=self._library.get(call.name),
            library=self._library,
            level=call.depth,
        )


def _nearest(spans: dict[tuple[int, ...], OpenSpan], sequence: tuple[int, ...]) -> OpenSpan | None:
    """The call that this one stands in; places of loops lie between them."""
    for length in range(len(sequence) - 1, 0, -1):
        if sequence[:length] in spans:
            return spans[sequence[:length]]
    return None
