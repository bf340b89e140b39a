"""``agentkit tools add``: Python tools, composites, and what people edited in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

import click

from agentkit.cli import edits
from agentkit.cli.compose import add_composite
from agentkit.cli.importing import (
    conflict_option,
    import_definitions,
    reason_option,
    report_import,
)
from agentkit.cli.loading import load_tools
from agentkit.cli.options import is_typed, json_option, store_option
from agentkit.cli.stores import opened
from agentkit.errors import UsageError
from agentkit.library.conflicts import ConflictPolicy


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
