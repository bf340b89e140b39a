"""Which names a variable, a parameter or a loop may set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentkit.composites import ir
from agentkit.composites.faults import Fault
from agentkit.composites.language import RESERVED
from agentkit.composites.problems import SourceCode
from agentkit.composites.written import is_dotted, written


def variables_of(program: ir.Program) -> dict[str, ir.Node]:
    """Every name that the function sets, with the first node that sets it."""
    found: dict[str, ir.Node] = {}
    for parameter in program.parameters:
        found.setdefault(parameter.name, parameter)
    waiting = list(reversed(program.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Assign | ir.For):
            for target in node.targets:
                found.setdefault(target, node)
        if isinstance(node, ir.Update):
            found.setdefault(node.target, node)
        if isinstance(node, ir.If):
            waiting.extend(reversed((*node.then, *node.otherwise)))
        elif isinstance(node, ir.For):
            waiting.extend(reversed(node.body))
    return found


def name_fault(name: str, node: ir.Node, own: str) -> Fault | None:
    """What is wrong with a name that ``node`` sets."""
    if name[:1] == "_":
        what: SourceCode = "parameter" if isinstance(node, ir.Parameter) else "underscore_name"
        message = f"the name `{name}` starts with an underscore"
        return Fault(node, what, message, "Use a plain name, such as `item`.")
    if name in RESERVED:
        message = f"`{name}` is a function of the language"
        return Fault(node, "name_shadowing", message, f"Use another name, such as `{name}_value`.")
    if name == own:
        message = f"`{name}` is the composite's own name"
        return Fault(node, "name_shadowing", message, "Use another name for the variable.")
    return None


def parameter_faults(program: ir.Program) -> Iterator[Fault]:
    """Parameters that have one name."""
    seen: set[str] = set()
    for parameter in program.parameters:
        if parameter.name in seen:
            message = f"the parameter `{parameter.name}` is there twice"
            yield Fault(parameter, "parameter", message, "Give each parameter its own name.")
        seen.add(parameter.name)


def clash_faults(variables: Mapping[str, ir.Node], called: Iterable[str]) -> Iterator[Fault]:
    """Variables that have the name of a child that the program calls."""
    for child in called:
        name = child.partition(".")[0] if is_dotted(child) else written(child)
        if name in variables:
            message = f"`{name}` is a variable, and the tool {child!r} is called by that name"
            advice = f"Rename the variable, such as `{name}_result`."
            yield Fault(variables[name], "name_shadowing", message, advice)
