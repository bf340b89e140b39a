"""``agentkit tools doctor``: a check-up of a catalogue, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import click

from agentkit.cli.loading import load_tools, read_content
from agentkit.cli.options import FromZero, StoreUrl, argument, command, option
from agentkit.cli.output import (
    LineProgress,
    Output,
    fold,
    plural,
    print_table,
    print_text,
    right,
    say,
    say_some,
)
from agentkit.cli.stores import opened_to_read
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checks import Checkup, examine
from agentkit.evaluation.doctor.findings import KINDS, Finding, Kind, listed
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import definitions_from_json

_HEAVIEST = 3
_SHOWN = 20
_MANY = 1000


@command()
def doctor(
    files: Annotated[tuple[str, ...], argument("[FILE]...")] = (),
    *,
    check: Annotated[tuple[str, ...], option(type=click.Choice(tuple(KINDS)))] = (),
    tool: tuple[str, ...] = (),
    limit: FromZero | None = None,
    exit_code: bool = False,
    store_url: StoreUrl,
) -> Output:
    """Examine a catalogue of tools, without a model.

    Reports token costs; missing, empty or unclean texts; undeclared types; near duplicates; pairs
    that retrieval confuses, with the words that cause it; clashing names; schemas that providers
    refuse; tools that episodes never used.

    Each FILE is examined instead of the library, and several as one catalogue: JSON or JSON lines,
    plain or .gz, as 'tools import' reads it, '-' for stdin; or FILE.py[:NAME].

    Args:
        check (CODE): Only this kind of finding, in full
        tool (NAME): Only findings about this tool, in full
        limit: Most findings of a kind, 0 for all. [default: 20, all with --json]
        exit_code: Exit status 1 when there are errors.

    Examples:
      agentkit tools doctor
      agentkit tools doctor catalogue.jsonl.gz
      agentkit tools doctor --check confused --limit 50
    """
    catalogue = _catalogue(files, store_url)
    checkup = examine(catalogue, codes=check, tools=tool)
    most = _SHOWN if limit is None else limit or None
    return Output(
        record=checkup.to_json(limit=limit or None),
        view=lambda: _print_kinds(checkup, most) if check or tool else _print_overview(checkup),
        failed=exit_code and any(one.kind.severity == "error" for one in checkup.findings),
    )


def _catalogue(files: Sequence[str], store_url: str) -> Catalogue:
    """The tools of the files, or of the library with its episodes."""
    if files:
        catalogue = Catalogue.of([one for name in files for one in _read(name)])
    else:
        with opened_to_read(store_url) as store:
            catalogue = Catalogue.of(store.load().definitions, episodes=store.select())
    count = len(catalogue.library)
    if count <= _MANY:
        return catalogue
    return replace(catalogue, progress=LineProgress(f"Examining {plural(count, 'tool')}"))


def _read(name: str) -> Iterable[ToolDefinition]:
    """The definitions of a file; what is unusable in it is said and left out."""
    if name.partition(":")[0].endswith(".py"):
        return [tool.definition for tool in load_tools([name])]
    batch = definitions_from_json(read_content(name), reference=name)
    say_some(f"{name}: entry {one.index + 1} is unusable: {one.reason}" for one in batch.rejected)
    return batch.definitions


def _print_overview(checkup: Checkup) -> None:
    """A few numbers, then one row a kind of finding."""
    weights, total = checkup.weights, checkup.tokens
    if not weights:
        click.echo("there are no tools")
        return
    print_text(
        f"{plural(len(weights), 'tool')}, {total:,} prompt tokens when all are offered, "
        f"{total // len(weights):,} each on average"
    )
    heaviest = [f"{name} {tokens:,}" for name, tokens in list(weights.items())[:_HEAVIEST]]
    print_text(f"heaviest: {', '.join(heaviest)}")
    groups = list(checkup.grouped())
    if not groups:
        click.echo("nothing was found")
        return
    click.echo()
    print_table(["check", right("found"), right("tokens"), fold("what")], _rows(groups))
    click.echo()
    say("--check CODE shows one kind in full, --tool NAME what concerns one tool")


def _rows(groups: Iterable[tuple[Kind, Sequence[Finding]]]) -> Iterator[tuple[object, ...]]:
    """A row a kind, below a row for its severity."""
    severity = ""
    for kind, found in groups:
        if kind.severity != severity:
            severity = kind.severity
            yield f"{severity}s", "", "", ""
        tokens = sum(finding.tokens for finding in found)
        yield f"  {kind.code}", f"{len(found):,}", f"{tokens:,}" if tokens else "", kind.title


def _print_kinds(checkup: Checkup, limit: int | None) -> None:
    """Every finding, kind by kind, with why it matters and what to do."""
    groups = list(checkup.grouped())
    if not groups:
        click.echo("nothing was found")
    for at, (kind, found) in enumerate(groups):
        if at:
            click.echo()
        print_text(f"{kind.code} ({kind.severity}): {kind.title}")
        print_text(f"why: {kind.why}", indent="  ")
        print_text(f"do: {kind.advice}", indent="  ")
        click.echo()
        rows = [(listed(one.tools, shown=1), one.what) for one in found[:limit]]
        print_table([fold("tool"), fold("what")], rows)
        if limit and len(found) > limit:
            say(f"{limit:,} of {len(found):,} shown (--limit 0 for all)")
