"""Static rules of the composite language, on programs of any origin."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.errors import SourceProblem
from agentkit.tools.composite import ir
from agentkit.tools.composite.faults import Fault, placed
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.tool import Tool


def check_program(
    program: ir.Program,
    tools: Mapping[str, Tool] | None = None,
    *,
    name: str = "",
    limits: CompositeLimits | None = None,
) -> tuple[SourceProblem, ...]:
    """What is wrong with a program, in the order of its text.

    Args:
        program: From a text or from data.
        tools: The tools that it may call, by their name in the library; None leaves the calls
            unchecked.
        name: The composite's own name, which it may not call.
        limits: Caps on the program.
    """
    faults: list[Fault] = []
    return placed(faults, lambda _: (1, 1))
