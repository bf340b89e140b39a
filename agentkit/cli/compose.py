"""``agentkit tools add --composite``: a Python function becomes a composite of the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import click

from agentkit import evolution
from agentkit.cli.loading import load_tools
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import author, event_signer, opened
from agentkit.errors import SourceProblem, UsageError
from agentkit.evolution.insert_outcomes import SAME_TOOL, Added, InsertOutcome, Merged, Rejected
from agentkit.library import Library
from agentkit.tools.tool import Tool


def add_composite(
    file: TextIO,
    targets: Sequence[str],
    *,
    dry_run: bool,
    revise: bool,
    run_undeclared: bool,
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Make a composite of the one Python function in a file, and add it.

    The function is never run as Python. Its text is read into a program that calls tools of the
    library, tried on its worked calls with every condition of every tool checked, and then
    added, or merged into a tool that does the same, or rejected with the reason.

    Args:
        file: The text of the function.
        targets: Python code of the tools that it calls; see ``load_tools``.
        dry_run: Whether only to say what would happen.
        revise: Whether it replaces a composite of the same name.
        run_undeclared: Whether tools that declare no effects may run.
        reason: Why, for the log.
        store_url: Where the library is.
        as_json: Whether to print JSON.

    Raises:
        Exit: With status 1, where it is rejected.
    """
    source = _read(file)
    code = load_tools(targets)
    policy = evolution.InsertPolicy(allow_revisions=revise, run_undeclared=run_undeclared)
    with opened(store_url) as store:
        manager = evolution.ToolManager(
            store, tools=code, policy=policy, author=author(), signer=event_signer()
        )
        if dry_run:
            outcome = manager.preview(source)
        else:
            why = reason or f"compose {file.name}"
            outcome = manager.insert(source, reason=why)
        library = manager.library
    if as_json:
        print_json({**outcome.to_json(), "dry_run": dry_run})
    else:
        _report(outcome, source, file.name, dry_run=dry_run)
    if isinstance(outcome, Rejected):
        _hint_at_code(outcome, code, library)
        raise click.exceptions.Exit(1)


def _read(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.name}: not a text in UTF-8 ({error})") from error


def _report(outcome: InsertOutcome, source: str, file: str, *, dry_run: bool) -> None:
    match outcome:
        case Added():
            click.echo(_added(outcome, dry_run=dry_run))
        case Merged():
            click.echo(_merged(outcome, dry_run=dry_run))
            if f"def {outcome.into}(" in source and outcome.reason != SAME_TOOL:
                say(f"--revise puts this text in the place of {outcome.into}")
        case Rejected():
            for line in _rejected(outcome, source, file):
                say(line)


def _added(outcome: Added, *, dry_run: bool) -> str:
    definition = outcome.definition
    children = ", ".join(child.name for child in definition.signature.children)
    done = "would be added" if dry_run else "revised" if outcome.revised else "added"
    text = (
        f"{definition.name} {done}: library version {outcome.version}, depth {outcome.depth}, "
        f"saves {plural(outcome.saved_calls, 'call')}, calls {children}"
    )
    if outcome.repinned:
        text += f"; pinned to it anew: {', '.join(outcome.repinned)}"
    return text


def _merged(outcome: Merged, *, dry_run: bool) -> str:
    if not outcome.examples_moved:
        return (
            f"{outcome.into} does this already, {outcome.reason}; the library stays at version "
            f"{outcome.version}"
        )
    done = "would be merged" if dry_run else "merged"
    moved = plural(outcome.examples_moved, "worked call")
    renamed = ", ".join(f"{a} is {b}" for a, b in outcome.parameters.items() if a != b)
    return (
        f"{done} into {outcome.into}, {outcome.reason}: {moved} moved there; library version "
        f"{outcome.version}{f' ({renamed})' if renamed else ''}"
    )


def _rejected(outcome: Rejected, source: str, file: str) -> Iterator[str]:
    yield f"rejected [{outcome.code}]: {outcome.explanation}"
    for problem in outcome.problems:
        yield from _place(problem, source, file)
    if not outcome.problems:
        yield f"  {outcome.advice}"


def _place(problem: SourceProblem, source: str, file: str) -> Iterator[str]:
    """The problem with its line and a caret under its column, as compilers print it."""
    yield f"{file}:{problem.line}:{problem.column}: {problem.message} [{problem.code}]"
    lines = source.splitlines()
    if 0 < problem.line <= len(lines):
        line = lines[problem.line - 1]
        before = "".join(c if c == "\t" else " " for c in line[: problem.column - 1])
        yield f"    {line}"
        yield f"    {before}^"
    yield f"    {problem.advice}"


def _hint_at_code(outcome: Rejected, code: Sequence[Tool], library: Library) -> None:
    """What the command line can say beyond the reason itself."""
    if outcome.code == "unknown_child":
        absent = sorted(tool.name for tool in code if tool.name not in library)
        if absent:
            say(
                f"{', '.join(absent)} of --tools: not in the library yet, and a composite is made "
                "of tools in the library; 'agentkit tools add' adds them"
            )
    elif outcome.code in {"no_stub", "unbound_child"} and not code:
        say("give the code of the tools that it calls with --tools to try it out")
