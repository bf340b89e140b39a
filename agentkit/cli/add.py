"""``agentkit tools add``: Python tools, composites, and what people edited in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

import click

from agentkit import evolution
from agentkit.cli import edits
from agentkit.cli.importing import conflict_option, import_definitions, reason_option, report_import
from agentkit.cli.loading import load_tools
from agentkit.cli.options import is_typed, json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import author, event_signer, opened
from agentkit.errors import SourceProblem, UsageError
from agentkit.evolution.insert_outcomes import SAME_TOOL, Added, InsertOutcome, Merged, Rejected
from agentkit.library import Library
from agentkit.library.conflicts import ConflictPolicy
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


@click.command(
    short_help="Add Python tools, a composite, or edited files.",
    epilog="""\b
Examples:
  agentkit tools add my_package.weather:get_weather
  agentkit tools add tools.py                 every @tool in the file
  agentkit tools add tools.py:add --on-conflict replace --reason 'clearer words'
  agentkit tools add --composite order_total.py --tools calculator.py --dry-run
  agentkit tools add --edited --store dir:library
  agentkit tools add --discard get_weather --store dir:library""",
)
@click.argument("sources", nargs=-1, metavar="[MODULE:NAME|FILE.py[:NAME]|TOOL]...")
@click.option(
    "--composite",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Make a composite of the one Python function in FILE, - for stdin.",
)
@click.option(
    "--edited",
    is_flag=True,
    help="Suggest what people edited in the files of a store dir:PATH, for each TOOL or for all.",
)
@click.option(
    "--discard",
    metavar="TOOL",
    help="Write the file of TOOL as the library has it; the edited text goes to local/set-aside.",
)
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of the tools that a composite calls, to try it; may be given several times.",
)
@click.option("--dry-run", is_flag=True, help="With --composite: say what would happen.")
@click.option(
    "--revise", is_flag=True, help="With --composite: replace a composite of the same name."
)
@click.option(
    "--run-undeclared",
    is_flag=True,
    help="Also run tools that declare no effects while trying composites: your word that they "
    "touch nothing. Otherwise they answer from their worked calls.",
)
@click.option(
    "--remove", is_flag=True, help="With --edited: take out tools whose files were deleted."
)
@conflict_option
@reason_option
@store_option
@json_option
def add(
    sources: Sequence[str],
    composite: TextIO | None,
    *,
    edited: bool,
    discard: str | None,
    targets: Sequence[str],
    dry_run: bool,
    revise: bool,
    run_undeclared: bool,
    remove: bool,
    on_conflict: ConflictPolicy,
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Add the definitions of Python functions to the library.

    The code stays where it is: to run these tools, give the same target to 'agentkit run --tools'.

    With --composite the function in FILE is never run as Python: its text is read into a program
    that calls tools of the library, tried on its worked calls, and then added, or merged into a
    tool that does the same, or rejected with the reason and exit status 1.

    With --edited each edited file is checked like any other suggestion and waits for 'agentkit
    review'; 'agentkit check' lists such files.
    """
    asked = {"--composite": composite, "--edited": edited or None, "--discard": discard}
    if not sources and not is_typed("targets") and all(one is None for one in asked.values()):
        sources = targets  # those of the project
    mode = _mode(sources, asked)
    _refuse_strangers(
        mode,
        {
            "--tools": (is_typed("targets"), {"--composite", "--edited"}),
            "--dry-run": (dry_run, {"--composite"}),
            "--revise": (revise, {"--composite"}),
            "--run-undeclared": (run_undeclared, {"--composite"}),
            "--remove": (remove, {"--edited"}),
            "--on-conflict": (on_conflict != "error", {""}),
        },
    )
    if composite is not None:
        add_composite(
            composite,
            targets,
            dry_run=dry_run,
            revise=revise,
            run_undeclared=run_undeclared,
            reason=reason,
            store_url=store_url,
            as_json=as_json,
        )
    elif edited:
        edits.propose(store_url, sources, targets, reason=reason, removes=remove, as_json=as_json)
    elif discard is not None:
        edits.discard(store_url, discard, as_json=as_json)
    else:
        definitions = [tool.definition for tool in load_tools(sources)]
        with opened(store_url) as store:
            why = reason or f"add {' '.join(sources)}"
            plan, version = import_definitions(store, definitions, on_conflict, why)
        report_import(plan, version, as_json=as_json)


def _mode(sources: Sequence[str], asked: Mapping[str, object]) -> str:
    """The option that says what is added; empty for Python tools.

    Raises:
        UsageError: There is nothing to add, or two things.
    """
    given = [option for option, value in asked.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other; give one")
    mode = given[0] if given else ""
    if sources and mode in {"--composite", "--discard"}:
        raise UsageError(f"{mode} takes no further arguments, and got {' '.join(sources)}")
    if not sources and not mode:
        raise UsageError(
            "what should be added? Give a Python file such as tools.py, --composite FILE, "
            "or --edited"
        )
    return mode


def _refuse_strangers(mode: str, options: Mapping[str, tuple[bool, set[str]]]) -> None:
    """Refuse options that mean nothing in a mode.

    Args:
        mode: See ``_mode``.
        options: By option: whether it is given, and the modes that it belongs to.

    Raises:
        UsageError: An option was given that belongs to other modes.
    """
    for option, (is_given, modes) in options.items():
        if is_given and mode not in modes:
            owners = " and ".join(sorted(one or "Python tools" for one in modes))
            raise UsageError(f"{option} belongs to {owners}")
