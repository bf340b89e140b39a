"""``agentkit tools add``: Python tools, composites, and what people edited in files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, TextIO

import click

from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    AsJson,
    OnConflict,
    Reason,
    StoreUrl,
    Targets,
    argument,
    command,
    option,
)
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import manager_of, opened, opened_to_read, person
from agentkit.cli.tools import import_definitions, report_import
from agentkit.errors import SourceProblem, UsageError
from agentkit.evolution.dry_run import InsertPolicy
from agentkit.evolution.hand_edits import EditedStore, ProposedEdit, propose_edits
from agentkit.evolution.insertion import SAME_TOOL, InsertOutcome
from agentkit.evolution.manager import ToolManager
from agentkit.library.directory import HandEdit

_LONGEST_SOURCE = 1_000_000
"""Characters of the text of one composite."""


@command(short_help="Add Python tools, a composite, or edited files.")
def add(
    sources: Annotated[tuple[str, ...], argument("[MODULE:NAME|FILE.py[:NAME]|TOOL]...")] = (),
    *,
    composite: Annotated[TextIO | None, option(type=click.File(encoding="utf-8"))] = None,
    edited: bool = False,
    targets: Targets,
    dry_run: bool = False,
    revise: bool = False,
    run_undeclared: bool = False,
    remove: bool = False,
    on_conflict: OnConflict,
    reason: Reason,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Add the definitions of Python functions to the library.

    The code stays where it is: to run these tools, give the same target to 'agentkit run --tools'.

    With --composite the function in FILE is never run as Python: its text is read into a program
    that calls tools of the library, tried on its worked calls, and then added, or merged into a
    tool that does the same, or rejected with the reason and exit status 1.

    With --edited each edited file is checked like any other suggestion and waits for 'agentkit
    review'; 'agentkit check' lists such files.

    Args:
        composite (FILE): Make a composite of the one Python function in FILE, - for stdin.
        edited: Suggest what people edited in the files of a store dir:PATH, for each TOOL or for
            all.
        dry_run: With --composite: say what would happen.
        revise: With --composite: replace a composite of the same name.
        run_undeclared: Also run tools that declare no effects while trying composites: your word
            that they touch nothing. Otherwise they answer from their worked calls.
        remove: With --edited: take out tools whose files were deleted.

    Examples:
      agentkit tools add my_package.weather:get_weather
      agentkit tools add tools.py                 every @tool in the file
      agentkit tools add tools.py:add --on-conflict replace --reason 'clearer words'
      agentkit tools add --composite order_total.py --tools calculator.py --dry-run
      agentkit tools add --edited --store dir:library
    """
    if composite is not None and edited:
        raise UsageError("--composite and --edited exclude each other; give one")
    if composite is not None:
        policy = InsertPolicy(allow_revisions=revise, run_undeclared=run_undeclared)
        code = load_tools(targets)
        with opened(store_url) as store:
            manager = manager_of(store, code, trying=policy, author=person())
            _add_composite(manager, composite, reason, dry_run=dry_run, as_json=as_json)
        return
    if edited:
        _propose_edits(store_url, sources, targets, reason, removes=remove, as_json=as_json)
        return
    sources = sources or targets  # those of the project
    if not sources:
        raise UsageError(
            "what should be added? Give a Python file such as tools.py, --composite FILE, "
            "or --edited"
        )
    definitions = [tool.definition for tool in load_tools(sources)]
    with opened(store_url) as store:
        why = reason or f"add {' '.join(sources)}"
        plan, version = import_definitions(store, definitions, on_conflict, why)
    report_import(plan, version, as_json=as_json)


def _add_composite(
    manager: ToolManager,
    file: TextIO,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a composite of the one function in a file, and add it, unless it is a dry run.

    Raises:
        Exit: With status 1, where it is rejected.
    """
    try:
        source = file.read(_LONGEST_SOURCE + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.name}: not a text in UTF-8 ({error})") from error
    if len(source) > _LONGEST_SOURCE:
        raise UsageError(f"{file.name}: has more than {_LONGEST_SOURCE:,} characters")
    if dry_run:
        outcome = manager.preview(source)
    else:
        outcome = manager.insert(source, reason=reason or f"compose {file.name}")
    if as_json:
        print_json({**outcome.to_json(), "dry_run": dry_run})
    else:
        _tell_outcome(outcome, source, file.name, dry_run=dry_run)
    if outcome.failed is not None:
        raise click.exceptions.Exit(1)


def _tell_outcome(outcome: InsertOutcome, source: str, file: str, *, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    if outcome.failed is not None:
        say(f"rejected [{outcome.failed.code}]: {outcome.failed.message}")
        for problem in outcome.problems:
            _say_place(problem, source, file)
        if not outcome.problems:
            say(f"  {outcome.failed.advice}")
    elif (found := outcome.duplicate) is not None:
        if moved := outcome.examples_moved:
            renamed = ", ".join(f"{a} is {b}" for a, b in found.parameters.items() if a != b)
            click.echo(
                f"{would}merged into {found.name}, {found.reason}: {plural(moved, 'worked call')} "
                f"moved there; library version {outcome.version}"
                + (f" ({renamed})" if renamed else "")
            )
        else:
            stays = f"the library stays at version {outcome.version}"
            click.echo(f"{found.name} does this already, {found.reason}; {stays}")
        if f"def {found.name}(" in source and found.reason != SAME_TOOL:
            say(f"--revise puts this text in the place of {found.name}")
    elif outcome.definition is not None:
        children = ", ".join(child.name for child in outcome.definition.signature.children)
        done = "revised" if outcome.is_revision and not dry_run else f"{would}added"
        again = ", ".join(outcome.repinned)
        click.echo(
            f"{outcome.name} {done}: library version {outcome.version}, depth {outcome.depth}, "
            f"saves {plural(outcome.saved_calls, 'call')}, calls {children}"
            + (f"; pinned to it anew: {again}" if again else "")
        )


def _say_place(problem: SourceProblem, source: str, file: str) -> None:
    """The problem with its line and a caret under its column, as compilers print it."""
    say(f"{file}:{problem.line}:{problem.column}: {problem.message} [{problem.code}]")
    lines = source.splitlines()
    if 0 < problem.line <= len(lines):
        line = lines[problem.line - 1]
        before = "".join(c if c == "\t" else " " for c in line[: problem.column - 1])
        say(f"    {line}\n    {before}^")
    say(f"    {problem.advice}")


def edit_words(edit: HandEdit) -> str:
    """``changed``, ``new`` or ``deleted``, and whether the library changed the tool too."""
    what = "deleted" if edit.is_deletion else "new" if edit.before is None else "changed"
    if edit.is_conflict and not (edit.before is None and edit.newest is None):
        what += "; the library changed it too"
    return what


def fault_words(edit: HandEdit) -> str:
    """Why the file can not be taken; empty when it can."""
    return f"{edit.file.name}: {'; '.join(edit.faults)}" if edit.faults else ""


def _propose_edits(
    store_url: str,
    names: Sequence[str],
    targets: Sequence[str],
    reason: str,
    *,
    removes: bool,
    as_json: bool,
) -> None:
    """Make proposals of the edits of some tools, or of all, in the name of the person here.

    Each edit is checked like any other suggestion, and moved onto the newest definition when the
    library changed meanwhile. 'agentkit review' then shows and decides.

    Raises:
        UsageError: A file of that name was not edited.
        Exit: With status 1, where a file can not be taken, or its proposal is rejected.
    """
    with opened_to_read(store_url) as store:
        if not isinstance(store, EditedStore):
            raise UsageError(
                f"the store {store_url} keeps no files that people edit; name one with "
                "--store dir:PATH"
            )
        found = [edit for edit in store.edits() if not names or edit.name in names]
        if unknown := sorted(set(names) - {edit.name for edit in found}):
            raise UsageError(f"no file of {', '.join(map(repr, unknown))} was edited by hand")
        manager = manager_of(store, load_tools(targets), author=person())
        came = asyncio.run(
            propose_edits(found, manager, person=person(), reason=reason, removes=removes)
        )
        for one in came:
            if one.outcome == "contained":
                store.take_back(one.edit.name)
    if as_json:
        print_json([one.to_json() for one in came])
    else:
        for one in came:
            click.echo(f"{one.edit.name}: {_edit_outcome(one)}")
        if any(one.record is not None and one.record.is_open for one in came):
            say("'agentkit review' shows what waits, 'agentkit review approve ID' lets it in")
        if not came:
            say("no file was edited by hand")
    bad = {"rejected", "quarantined"}
    if any(
        one.outcome == "faulty" or (one.record is not None and one.record.state in bad)
        for one in came
    ):
        raise click.exceptions.Exit(1)


def _edit_outcome(one: ProposedEdit) -> str:
    if one.record is not None:
        why = "; ".join(check.message for check in one.record.failed)
        return f"{one.record.state} as {one.record.proposal_id}" + (f": {why}" if why else "")
    match one.outcome:
        case "faulty":
            return f"not taken: {fault_words(one.edit)}"
        case "deleted":
            changed = ", and the library changed it" if one.edit.is_conflict else ""
            return f"its file is gone{changed}; --remove takes the tool out, git brings it back"
        case "removed":
            return "taken out"
        case _:
            return "the library has it already; its file is up to date again"
