"""The static rules of the composite language, for programs of any origin.

What a text breaks by its grammar is refused where it is read (``parser``); what it breaks by its
meaning is found here, on the program, so that a program that came as data is held to the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from agentkit.composites import ir
from agentkit.composites.checking.flow import Flow
from agentkit.composites.checking.liveness import dead_calls
from agentkit.composites.checking.names import clash_faults, parameter_faults, variables_of
from agentkit.composites.checking.sizes import size_faults
from agentkit.composites.checking.visitor import Visitor
from agentkit.composites.faults import Fault, Place, placed
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.problems import SourceCode
from agentkit.composites.render import places_of
from agentkit.errors import SourceProblem
from agentkit.tools.tool import Tool

FLOW_CODES: Final[frozenset[SourceCode]] = frozenset(
    {"possibly_unbound", "missing_return", "unreachable_code", "dead_call"}
)
"""What can only be said of a program that was read completely."""

_START: Place = (1, 1)


def check_program(
    program: ir.Program,
    tools: Mapping[str, Tool] | None = None,
    *,
    name: str = "",
    limits: CompositeLimits | None = None,
) -> tuple[SourceProblem, ...]:
    """What is wrong with a program, with the lines of the text that ``render`` makes of it.

    The nodes must hold what ``ir`` says, as all that ``program_from_json`` or ``parse`` gives do.

    Args:
        program: From a text or from data.
        tools: The tools that it may call, by their name in the library; with None, the rules
            that need their signatures and effects are left out.
        name: The composite's own name, which it may not call.
        limits: Caps on the program.

    Example:
        >>> first, second = (ir.Return(value=ir.Name(name=name)) for name in "xy")
        >>> program = ir.Program(parameters=(), body=(first, second))
        >>> [(problem.line, problem.code) for problem in check_program(program)]
        [(2, 'unknown_name'), (3, 'unreachable_code'), (3, 'unknown_name')]
    """
    faults = size_faults(program, limits or CompositeLimits())
    if faults:
        return placed(faults, lambda _: _START)
    faults = find_faults(program, tools, name=name)
    if not faults:
        return ()
    places = places_of(program)
    return placed(faults, lambda node: places.get(id(node), _START))


def find_faults(
    program: ir.Program,
    children: Mapping[str, Tool] | None,
    *,
    name: str = "",
    assumed: Iterable[str] = (),
    tool_names: Collection[str] | None = None,
) -> list[Fault]:
    """What is wrong with a program that is not too large.

    Args:
        program: The program.
        children: The tools that it may call, by their name in the library.
        name: The composite's own name.
        assumed: Further names that are set before the program starts.
        tool_names: What else a tool may be called by, for messages.
    """
    variables: dict[str, ir.Node] = variables_of(program)
    callable_names = (children or ()) if tool_names is None else tool_names
    visitor = Visitor({**dict.fromkeys(assumed), **variables}, children, name, callable_names)
    visitor.bound.update(assumed)
    visitor.faults.extend(parameter_faults(program))
    flow = Flow(visitor)
    for parameter in program.parameters:
        flow.bind(parameter, (parameter.name,))
    if flow.block(program.body):
        visitor.faults.append(_missing_return(program))
    visitor.faults.extend(clash_faults(variables, visitor.called))
    if children:
        visitor.faults.extend(dead_calls(program, flow.uses, children))
    return visitor.faults


def find_expression_faults(expression: ir.Expression, names: Sequence[str]) -> list[Fault]:
    """What is wrong with an expression over ``names`` that calls no tool."""
    visitor = Visitor(dict.fromkeys(names), None, "")
    visitor.bound.update(names)
    visitor.visit(expression)
    return visitor.faults


def _missing_return(program: ir.Program) -> Fault:
    return Fault(
        program.body[-1] if program.body else program,
        "missing_return",
        "a way through the function ends without `return`",
        "End every way with `return value`; write `return None` where there is nothing to give.",
    )
