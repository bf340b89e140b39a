"""The worked calls of composites for ``agentkit check``, run over the code given."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentkit.errors import CompositeError
from agentkit.evolution.dry_run import (
    BudgetSpent,
    DryRun,
    Failed,
    InsertPolicy,
    Procedure,
    agree,
    call_text,
)
from agentkit.library import Library
from agentkit.library.pins import LibraryFault
from agentkit.tools.definition import Example
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedCalls:
    """What trying the worked calls of composites came to.

    Attributes:
        held: How many gave the result that they state.
        untried: How many need the answer of a tool that has no code here.
        faults: Those that gave something else.
    """

    held: int = 0
    untried: int = 0
    faults: tuple[LibraryFault, ...] = ()


def try_worked_calls(
    library: Library, names: Sequence[str], code: Iterable[Tool], policy: InsertPolicy
) -> TriedCalls:
    """Run the worked calls of composites over the code given."""
    known = [
        tool.with_definition(library[tool.name].definition) for tool in code if tool.name in library
    ]
    bound = library.with_tools(known)
    held, untried = 0, 0
    faults: list[LibraryFault] = []
    for name in names or library.tools:
        tool = bound[name]
        if not tool.definition.is_composite:
            continue
        found = asyncio.run(_try_one(bound, tool, policy))
        held += found.count("")
        untried += found.count(None)
        faults += [
            LibraryFault(tool=name, code="example", message=told, advice=_MEND)
            for told in found
            if told
        ]
    return TriedCalls(held=held, untried=untried, faults=tuple(faults))


_MEND = (
    "correct the program or the worked call, then 'agentkit tools add --composite FILE --revise'"
)


async def _try_one(library: Library, tool: Tool, policy: InsertPolicy) -> list[str | None]:
    """For each worked call: empty when it holds, else what is wrong; None when it was not tried.

    One that needs an answer from a tool without code, or from one that touches the world, was not
    tried; nor one of a composite whose children are not in order, which is told already.
    """
    untried: list[str | None] = [None] * len(tool.definition.worked_calls)
    if tool.name not in library.dag.depths:
        return untried
    trial = DryRun(library.tools, Procedure(policy=policy))
    try:
        prepared = trial.safe(tool.name)
    except CompositeError:
        return untried
    return [await _outcome(prepared, one, trial) for one in tool.definition.worked_calls]


async def _outcome(tool: Tool, example: Example, trial: DryRun) -> str | None:
    call = call_text(tool.name, example.arguments)
    try:
        ran = await trial.run(tool, example.arguments)
    except BudgetSpent as spent:
        return f"{call}: {spent}"
    if isinstance(ran, Failed):
        return None if ran.cause == "no_stub" else f"{call}: {ran.message}"
    if agree(example.result, ran.value):
        return ""
    return f"{call} gave {ran.value!r}, not {example.result!r}"
