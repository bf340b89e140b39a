"""How large and how deep a program is, measured without recursion."""

from __future__ import annotations

from agentkit.composites import ir
from agentkit.composites.faults import Fault
from agentkit.composites.limits import CompositeLimits

_WRAPPERS = (ir.Argument, ir.Parameter)


def size_faults(program: ir.Program, limits: CompositeLimits) -> list[Fault]:
    """What is too large about a program; stops at the first node beyond a limit.

    The depth of a node is the number of statements and expressions that it lies in, itself
    included. A node that hangs in several places counts once for each.
    """
    waiting: list[tuple[ir.Node, int]] = [(program, 0)]
    count = 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > limits.nesting:
            return [too_deep(node, limits)]
        if count > limits.nodes:
            return [too_many(program, limits)]
        deeper = depth if isinstance(node, _WRAPPERS) else depth + 1
        waiting.extend((part, deeper) for part in ir.parts(node))
    return []


def too_deep(node: object, limits: CompositeLimits) -> Fault:
    """The fault of a node that is nested beyond the limit."""
    return Fault(
        node,
        "too_large",
        f"nested more than {limits.nesting} deep",
        "Assign inner parts to variables first; use a dict literal and .get() for a long chain "
        "of elif.",
    )


def too_many(node: object, limits: CompositeLimits) -> Fault:
    """The fault of a program of too many nodes."""
    return Fault(
        node,
        "too_large",
        f"the program has more than {limits.nodes} nodes",
        "Split it into two composites, one of which calls the other.",
    )
