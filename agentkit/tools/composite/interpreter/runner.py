"""``Composite``: a program bound to its children, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentkit.tools.composite import ir
from agentkit.tools.composite.interpreter.children import Child
from agentkit.tools.composite.interpreter.frames import RESULT, Activation, new_frame
from agentkit.tools.composite.interpreter.lowering import ExpressionLowering, Slots
from agentkit.tools.composite.interpreter.meter import Meter
from agentkit.tools.composite.interpreter.statements import StatementLowering
from agentkit.tools.composite.interpreter.trace import Order, TracedCall
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.composite.problems import ContractMode
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

_MISSING = object()


class Composite:
    """A program bound to its children."""

    def __init__(
        self,
        program: ir.Program,
        children: Mapping[str, Tool],
        *,
        name: str,
        limits: CompositeLimits | None = None,
        contracts: ContractMode = "off",
        definition: ToolDefinition | None = None,
    ) -> None:
        self.program = program
        self.name = name
        self.limits = limits or CompositeLimits()
        self._children = {
            child: Child(children[child])
            for child in dict.fromkeys(call.child for call in ir.calls(program))
        }
        slots = Slots(parameter.name for parameter in program.parameters)
        self._slots = {p.name: slots.of(p.name) for p in program.parameters}
        expressions = ExpressionLowering(slots, self._call)
        self._body = StatementLowering(expressions).block(program.body)
        self._template = [_MISSING] * slots.size
        for parameter in program.parameters:
            if parameter.default is not None:
                self._template[self._slots[parameter.name]] = parameter.default.value
        self._activation = Activation(path=(name,))
        self.needs_event_loop = False

    def _call(self, node: ir.Call, arguments: Any) -> Any:
        return self._children[node.child].lower(node, arguments)

    def __call__(self, **arguments: Any) -> Any:
        return self.run(arguments)

    def run(
        self,
        arguments: Mapping[str, Any],
        *,
        dry_run: bool = False,
        trace: Callable[[TracedCall], None] | None = None,
    ) -> Any:
        frame = new_frame(self._template, Meter(self.limits), self._activation, Order())
        for name, value in arguments.items():
            frame[self._slots[name]] = value
        self._body(frame)
        return frame[RESULT]
