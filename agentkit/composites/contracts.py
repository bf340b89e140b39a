"""Expressions over values, and the pre- and postconditions of tools (L3) made of them.

A condition is an expression of the composite language over the parameters; a postcondition may
also read ``result``. One that cannot be read or evaluated counts as violated, with the reason:
a contract is never true by accident. Conditions in words (``Specification.text``) never gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn

from agentkit.composites import language as ir
from agentkit.composites.guards import ACTIVATION, METER, OUTERMOST, Frame, Meter, fail
from agentkit.composites.interpreter import FrameLayout, Lowering
from agentkit.composites.parser import parse_expression
from agentkit.composites.problems import CONTRACT_LIMITS, CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ContractViolation, UsageError
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import short_repr

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
        slots = FrameLayout(names)
        lowering = Lowering(slots)
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
            fail(frame, self._program, meter.out_of_fuel())
        return self._evaluate(frame)

    def _complain(self, name: str, values: Mapping[str, Any]) -> NoReturn:
        names = ", ".join(map(repr, values)) or "nothing"
        message = f"the expression `{self.text}` reads {name!r}, but was given {names}"
        raise UsageError(message) from None


# --- conditions of tools --------------------------------------------------------------------------


def check_pre(definition: ToolDefinition, arguments: Mapping[str, Any]) -> ContractViolation | None:
    """The first precondition that does not hold for the arguments of a call; None when all do.

    A parameter that is left out has the default of its schema. A composite keeps the conditions of
    its children ready; this reads them again at each call.

    Args:
        definition: The tool.
        arguments: By parameter name; JSON data.

    Example:
        >>> from agentkit.tools.decorator import tool
        >>> @tool(pre=["b != 0"])
        ... def div(a: float, b: float) -> float:
        ...     '''A quotient.'''
        ...     return a / b
        >>> check_pre(div.definition, {"a": 1, "b": 2})
        >>> print(check_pre(div.definition, {"a": 1, "b": 0}))
        div: the precondition `b != 0` does not hold for b = 0
    """
    return Conditions(definition).before(arguments)


def check_post(
    definition: ToolDefinition, arguments: Mapping[str, Any], result: Any
) -> ContractViolation | None:
    """The first postcondition that does not hold for a call and its result; None when all do."""
    return Conditions(definition).after(arguments, result)


class Conditions:
    """The conditions of one tool, read at the first check and kept."""

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        properties = definition.signature.properties
        self._names = tuple(properties)
        self._defaults = {
            name: schema["default"]
            for name, schema in properties.items()
            if type(schema) is dict and "default" in schema  # JSON Schema allows true and false
        }

    @cached_property
    def _pre(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.pre, self._names)

    @cached_property
    def _post(self) -> Sequence[tuple[str, Expression | str]]:
        return _read(self._definition.specification.post, (*self._names, "result"))

    def before(
        self, arguments: Mapping[str, Any], *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first precondition that does not hold; ``path`` ends in the tool's own name."""
        return self._first("precondition", self._pre, {**self._defaults, **arguments}, path)

    def after(
        self, arguments: Mapping[str, Any], result: Any, *, path: Sequence[str] = ()
    ) -> ContractViolation | None:
        """The first postcondition that does not hold."""
        values = {**self._defaults, **arguments, "result": result}
        return self._first("postcondition", self._post, values, path)

    def _first(
        self,
        kind: Literal["precondition", "postcondition"],
        conditions: Sequence[tuple[str, Expression | str]],
        values: Mapping[str, Any],
        path: Sequence[str],
    ) -> ContractViolation | None:
        for text, expression in conditions:
            read = values if isinstance(expression, str) else expression.reads
            shown = {name: values[name] for name in read if name in values}
            reason = _broken(expression, values, shown)
            if reason:
                name = self._definition.name
                path = tuple(path) or (name,)
                return ContractViolation(
                    f"{' → '.join(path)}: the {kind} `{text}` {reason}",
                    code=kind,
                    tool_name=name,
                    condition=text,
                    values=shown,
                    path=path,
                )
        return None


def _read(texts: Iterable[str], names: Sequence[str]) -> Sequence[tuple[str, Expression | str]]:
    """Conditions, lowered; one that cannot be read has the reason instead."""
    read: list[tuple[str, Expression | str]] = []
    for text in texts:
        try:
            read.append((text, Expression.parse(text, names)))
        except CompositeError as error:
            problem = error.problems[0] if error.problems else error
            read.append((text, f"cannot be read: {problem}"))
    return read


def _broken(
    expression: Expression | str, values: Mapping[str, Any], shown: Mapping[str, Any]
) -> str:
    """Why a condition does not hold, as the end of a sentence; empty when it does."""
    if isinstance(expression, str):
        return expression
    try:
        if expression.evaluate(values, limits=CONTRACT_LIMITS):
            return ""
    except (CompositeRunError, UsageError) as error:
        return f"cannot be evaluated: {error}"
    assignments = ", ".join(f"{name} = {short_repr(value)}" for name, value in shown.items())
    return f"does not hold for {assignments}" if assignments else "does not hold"
