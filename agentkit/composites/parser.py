"""From the text of a composite to its program.

The composite language is a small part of Python: one function whose body calls tools and works
on JSON values. Nothing in it changes a value, every way through it ends in ``return``, and it
ends after as many steps as its loops have items::

    def trip_cost(start: str, stops: list[str], price_per_km: float = 0.3) -> dict:
        '''What a trip costs, and its longest leg.'''
        total, longest, here = 0, 0, start
        for stop in stops:
            leg = distance(start=here, end=stop)          # a tool, called by its name
            total += leg["km"]
            longest = max(longest, leg["km"])
            here = stop
        if total == 0:
            return {"cost": 0, "longest": 0}
        return {"cost": round(total * price_per_km, 2), "longest": longest}

It has

* assignments to names, ``a, b = pair``, ``x += 1``; ``if``, ``elif``, ``else``; ``for ... in`` with
  ``break`` and ``continue``; ``return``; a bare call of a tool, with or without ``await``;
* literals, arithmetic, comparisons, ``and``/``or``/``not``, ``a if test else b``, indexing, slices,
  plain f-strings, comprehensions with one ``for``;
* the functions and methods of ``agentkit.composites.language``.

It has no ``while``, ``try``, ``lambda``, ``import`` or attributes, and no function or comprehension
inside another. The text is read into the nodes of ``ir``, with Python's own parser, and never
executed. A text outside the language is refused with all that is wrong with it, each problem with
its line, its column and what to write instead.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentkit.composites import ir
from agentkit.composites.checking.sizes import size_faults, too_deep
from agentkit.composites.checks import FLOW_CODES, find_expression_faults, find_faults
from agentkit.composites.faults import Fault, Place, placed, refusal
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.reading import calls, expressions
from agentkit.composites.reading.context import Located, Positions, Reading, place_of
from agentkit.composites.reading.header import (
    Function,
    docstring_of,
    only_function,
    parameters,
)
from agentkit.composites.reading.statements import block
from agentkit.composites.reading.text import syntax_tree
from agentkit.errors import SourceProblem
from agentkit.tools.tool import Tool

__all__ = ["Function", "ParsedSource", "parse", "parse_expression"]

_READERS = {**expressions.READERS, **calls.READERS}


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSource:
    """A text of the composite language, read.

    Attributes:
        name: The function's name.
        program: Its body.
        docstring: As written, with its indentation; empty when there is none.
        function: The syntax, for what is not the program's: annotations and decorators.
        positions: Line and column of each node of ``program``, by the node's ``id``.
    """

    name: str
    program: ir.Program
    docstring: str
    function: Function
    positions: Mapping[int, Place]


def parse(
    source: str, tools: Mapping[str, Tool], *, limits: CompositeLimits | None = None
) -> ParsedSource:
    """Read the text of a composite.

    Args:
        source: One function.
        tools: What it may call, by the name used in the text. A key that Python can not write is
            written with ``_`` for each foreign character (``get_user`` for ``get user``), dots
            between names as they are (``weather.now(...)``).
        limits: Caps on the program.

    Raises:
        CompositeError: The text is outside the language; ``problems`` lists everything found, in
            the order of the text.

    Example:
        >>> from agentkit.errors import CompositeError
        >>> parsed = parse("def twice(x): return 2 * x", {})
        >>> parsed.name, parsed.program.parameters
        ('twice', (Parameter(name='x', default=None),))
        >>> try:
        ...     parse("def twice(x): return lambda: x", {})
        ... except CompositeError as error:
        ...     print(error.problems[0].message, error.problems[0].column)
        `lambda` is not in the language 22
    """
    limits = limits or CompositeLimits()
    tree = syntax_tree(source, limits)
    found = tree if isinstance(tree, SourceProblem) else only_function(tree)
    if isinstance(found, SourceProblem):
        raise refusal("", (found,))
    function, strays = found
    reading = _reading(source, tools, limits, function)
    reading.faults.extend(strays)
    program = _read_program(reading, function)
    if reading.faults:
        raise refusal(function.name, _placed(reading.faults, reading))
    return ParsedSource(
        name=function.name,
        program=program,
        docstring=docstring_of(function) or "",
        function=function,
        positions=Positions(reading.nodes, source),
    )


def parse_expression(
    text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
) -> ir.Expression:
    """Read one expression over ``names``, without calls of tools: a condition.

    Raises:
        CompositeError: The text is outside the language, or uses another name.

    Example:
        >>> parse_expression("amount > 0", ["amount"]).operators
        ('>',)
    """
    limits = limits or CompositeLimits()
    tree = syntax_tree(text, limits)
    found = tree if isinstance(tree, SourceProblem) else _only_expression(tree)
    if isinstance(found, SourceProblem):
        raise refusal("", (found,))
    reading = _reading(text, {}, limits, found)
    try:
        made = reading.expression(found)
        reading.faults.extend(find_expression_faults(made, names))
    except RecursionError:
        reading.faults.append(too_deep(found, limits))
    if reading.faults:
        raise refusal("", _placed(reading.faults, reading))
    return made


def _reading(
    text: str, tools: Mapping[str, Tool], limits: CompositeLimits, root: Function | ast.expr
) -> Reading:
    return Reading(text, tools=tools, limits=limits, readers=_READERS, root=root)


def _read_program(reading: Reading, function: Function) -> ir.Program:
    statements = function.body[docstring_of(function) is not None :]
    try:
        program = ir.Program(
            parameters=parameters(reading, function), body=block(reading, statements)
        )
        reading.faults.extend(_rules(reading, program))
    except RecursionError:  # limits above what this process can hold
        reading.faults.append(too_deep(function, reading.limits))
        return ir.Program(parameters=(), body=())
    return program


def _rules(reading: Reading, program: ir.Program) -> list[Fault]:
    """What breaks the rules of the language, as far as it can be said of what was read."""
    if len(reading.nodes) >= reading.limits.nodes:
        faults = size_faults(program, reading.limits)
        if faults:
            return faults
    faults = find_faults(
        program,
        reading.children,
        name=reading.name,
        assumed=reading.lost,
        tool_names=reading.tools,
    )
    if reading.is_partial or reading.faults:
        unsure = FLOW_CODES if reading.is_partial else {"dead_call"}
        return [fault for fault in faults if fault.code not in unsure]
    return faults


def _placed(faults: Sequence[Fault], reading: Reading) -> tuple[SourceProblem, ...]:
    def place(node: object) -> Place:
        syntax = reading.nodes.get(id(node), node)
        return place_of(syntax, reading.source) if isinstance(syntax, Located) else (1, 1)

    return placed(faults, place)


def _only_expression(tree: ast.Module) -> ast.expr | SourceProblem:
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        return tree.body[0].value
    return SourceProblem(
        code="syntax",
        message="the text is not one expression",
        advice="Write one expression, such as `amount > 0 and currency == 'EUR'`.",
    )
