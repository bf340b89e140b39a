"""``Expression``: a condition or a formula as text, over values that the caller names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from agentkit.composites import ir
from agentkit.composites.interpreter.failures import fail
from agentkit.composites.interpreter.frames import (
    ACTIVATION,
    METER,
    OUTERMOST,
    Frame,
)
from agentkit.composites.interpreter.lowering import ExpressionLowering, Slots
from agentkit.composites.interpreter.meter import Meter, out_of_fuel
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.parser import parse_expression
from agentkit.errors import UsageError

_LIMITS = CompositeLimits()


class Expression:
    """An expression of the composite language without calls of tools.

    It is lowered once, so that it may be evaluated for every row of a table.

    Attributes:
        text: As it was written.
        names: The names that it may read.
        reads: Those that it does read.

    Example:
        >>> large = Expression.parse('row["amount"] > 10 and row["region"] == "EU"', names=["row"])
        >>> large.evaluate({"row": {"amount": 12, "region": "EU"}})
        True
    """

    __slots__ = ("_cost", "_evaluate", "_places", "_program", "_template", "names", "reads", "text")

    def __init__(self, program: ir.Expression, *, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = tuple(names)
        slots = Slots(names)
        lowering = ExpressionLowering(slots, _no_call)
        self._evaluate = lowering.lower(program)
        self._cost = lowering.nodes
        used = {node.name for node in ir.walk(program) if isinstance(node, ir.Name)}
        self.reads = tuple(name for name in self.names if name in used)
        self._places = tuple((name, slots.of(name)) for name in self.reads)
        self._program = program
        self._template: Frame = [None] * slots.size
        self._template[ACTIVATION] = OUTERMOST

    @classmethod
    def parse(
        cls, text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
    ) -> Expression:
        """Read an expression.

        Args:
            text: One expression of the composite language.
            names: The names that it may read.
            limits: Caps on the text.

        Raises:
            CompositeError: It is outside the language; ``problems`` says where and why.
        """
        return cls(parse_expression(text, names, limits=limits), text=text, names=names)

    def evaluate(self, values: Mapping[str, Any], *, limits: CompositeLimits | None = None) -> Any:
        """The value of the expression.

        Args:
            values: By name, at least what the expression reads; JSON data.
            limits: Caps on this evaluation.

        Raises:
            CompositeRunError: An operation failed, or a limit was reached.
            UsageError: A name that the expression reads has no value.
        """
        frame = self._template.copy()
        meter = frame[METER] = Meter(limits or _LIMITS)
        for name, place in self._places:
            try:
                frame[place] = values[name]
            except KeyError:
                self._complain(name, values)
        meter.fuel -= self._cost
        if meter.fuel < 0:
            fail(frame, self._program, out_of_fuel(meter))
        return self._evaluate(frame)

    def _complain(self, name: str, values: Mapping[str, Any]) -> NoReturn:
        given = ", ".join(map(repr, values)) or "nothing"
        message = f"the expression `{self.text}` reads {name!r}, but was given {given}"
        raise UsageError(message) from None


def _no_call(node: ir.Call, _arguments: object) -> NoReturn:
    raise UsageError(f"an expression calls no tools, but this one calls {node.child!r}")
