"""``agentkit tools check``: whether the composites of the library are what they claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, plural, print_json, print_table, say
from agentkit.cli.stores import author, commit, new_proposal_id, opened_to_read
from agentkit.errors import CompositeError
from agentkit.evolution.insertion.agreement import agree
from agentkit.evolution.insertion.budget import BudgetSpent
from agentkit.evolution.insertion.dry_run import DryRun, Failed
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.trial import call_text
from agentkit.library import Library, LibraryChange
from agentkit.library.graph import in_order
from agentkit.library.pins import repinned, with_current_pins
from agentkit.library.soundness import LibraryFault, library_faults
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.definition import Example
from agentkit.tools.tool import Tool

_REPINNED = {"changed_child", "unpinned_call", "uncalled_pin", "effects"}
"""Faults that moving pins and joining effects anew mends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tried:
    """What trying the worked calls of composites came to."""

    held: int
    untried: int
    faults: tuple[LibraryFault, ...]


@click.command(
    epilog="""\b
Examples:
  agentkit tools check
  agentkit tools check net_total --tools calculator.py
  agentkit tools check --repin"""
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of tools: the worked calls of composites are then tried, with every "
    "condition checked; may be given several times.",
)
@click.option(
    "--run-undeclared",
    is_flag=True,
    help="Also run tools that declare no effects while trying: your word that they touch nothing. "
    "Otherwise they answer from their worked calls.",
)
@click.option(
    "--repin",
    is_flag=True,
    help="First pin composites, and those above them, to the tools as they are now. It says that "
    "you looked at what changed; nothing is validated by it.",
)
@store_option
@json_option
def check(
    names: Sequence[str],
    targets: Sequence[str],
    *,
    run_undeclared: bool,
    repin: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Look for faults in the composites NAME, or in all of them.

    Circles of calls, children that are missing or have changed, calls that are not pinned,
    programs that break a rule of the language or the types of their children, effects that are
    not those of the children, conditions that can not be read and, with --tools, worked calls
    that do not hold. The exit status is 1 when there is a fault.
    """
    moved = _repin(store_url, names) if repin else ()
    with opened_to_read(store_url) as store:
        library = store.load()
    faults = library_faults(library, names or None)
    tried = _Tried(held=0, untried=0, faults=())
    if targets:
        policy = InsertPolicy(run_undeclared=run_undeclared)
        tried = _try(library, names, load_tools(targets), policy)
    faults += tried.faults
    if as_json:
        print_json(_as_json(library, moved, faults, tried))
    else:
        _print(library, names, moved, faults, tried)
    if faults:
        raise click.exceptions.Exit(1)


def _repin(store_url: str, names: Sequence[str]) -> tuple[str, ...]:
    """Commit composites pinned to what the library has now, and say which they were."""
    moved: tuple[str, ...] = ()
    proposal_id = new_proposal_id("repin")

    def build(library: Library) -> LibraryChange | None:
        nonlocal moved
        faults = library_faults(library, names or None)
        stale = {fault.tool for fault in faults if fault.code in _REPINNED}
        order = in_order(sorted(stale), library.dag.children)
        fresh = [with_current_pins(library, library[name].definition) for name in order]
        upserts = [one for one in repinned(library, fresh) if one != library[one.name].definition]
        moved = tuple(definition.name for definition in upserts)
        if not upserts:
            return None
        reason = f"pin {', '.join(moved)} to the tools as they are"
        return LibraryChange(
            proposal_id=proposal_id, upserts=tuple(upserts), author=author(), reason=reason
        )

    with opened_to_read(store_url) as store:
        commit(store, build, operation="repin")
    return moved


def _try(
    library: Library, names: Sequence[str], code: Iterable[Tool], policy: InsertPolicy
) -> _Tried:
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
    return _Tried(held=held, untried=untried, faults=tuple(faults))


_MEND = "correct the program or the worked call; compose it anew"


async def _try_one(library: Library, tool: Tool, policy: InsertPolicy) -> list[str | None]:
    """For each worked call: empty when it holds, else what is wrong; None when it was not tried.

    One that needs an answer from a tool without code, or from one that touches the world, was not
    tried; nor one of a composite whose children are not in order, which is told already.
    """
    untried: list[str | None] = [None] * len(tool.definition.worked_calls)
    if tool.name not in library.dag.depths:
        return untried
    trial = DryRun(library.tools, policy=policy, limits=CompositeLimits())
    try:
        prepared = trial.safe(tool.name)
    except CompositeError:
        return untried
    return [await _outcome(prepared, one, trial, policy) for one in tool.definition.worked_calls]


async def _outcome(tool: Tool, example: Example, trial: DryRun, policy: InsertPolicy) -> str | None:
    call = call_text(tool.name, example.arguments)
    try:
        ran = await trial.run(tool, example.arguments)
    except BudgetSpent as spent:
        return f"{call}: {spent}"
    if isinstance(ran, Failed):
        return None if ran.cause == "no_stub" else f"{call}: {ran.message}"
    if agree(example.result, ran.value, tolerance=policy.tolerance):
        return ""
    return f"{call} gave {ran.value!r}, not {example.result!r}"


def _print(
    library: Library,
    names: Sequence[str],
    moved: Sequence[str],
    faults: Sequence[LibraryFault],
    tried: _Tried,
) -> None:
    if moved:
        say(f"pinned anew: {', '.join(moved)}; library version {library.version}")
    if faults:
        columns = [
            Column(title="tool", fit="fold"),
            Column(title="code"),
            Column(title="what is wrong", fit="fold"),
            Column(title="what to do", fit="fold"),
        ]
        rows = [(fault.tool, fault.code, fault.message, fault.advice) for fault in faults]
        print_table(columns, rows)
    looked_at = names or library.tools
    composites = sum(library[name].definition.is_composite for name in looked_at)
    told = f"{plural(composites, 'composite')} of library version {library.version}: "
    told += plural(len(faults), "fault") if faults else "no fault"
    if tried.held or tried.untried or tried.faults:
        told += f"; {plural(tried.held, 'worked call')} held"
    if tried.untried:
        told += f", {tried.untried:,} not tried (an answer of a tool is missing; see --tools)"
    say(told)


def _as_json(
    library: Library, moved: Sequence[str], faults: Sequence[LibraryFault], tried: _Tried
) -> dict[str, Any]:
    return {
        "library_version": library.version,
        "repinned": list(moved),
        "worked_calls": {"held": tried.held, "not_tried": tried.untried},
        "faults": [asdict(fault) for fault in faults],
    }
