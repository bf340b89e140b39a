"""``agentkit tools doctor``: a check-up of a catalogue, without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import click

from agentkit.cli.files import read_definitions
from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, plural, print_json, print_table, print_text, say, say_some
from agentkit.cli.progress import LineProgress
from agentkit.cli.stores import opened_to_read
from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checkup import Checkup, examine
from agentkit.evaluation.doctor.findings import KINDS, Finding, Kind, listed
from agentkit.evaluation.doctor.provider_rules import DEFAULT_PROVIDERS, PROVIDERS
from agentkit.tools.definition import ToolDefinition

_HEAVIEST = 3


def print_overview(checkup: Checkup) -> None:
    """A few numbers, then one row a kind of finding."""
    if not checkup.weights:
        click.echo("there are no tools")
        return
    _print_head(checkup)
    groups = list(checkup.grouped())
    if not groups:
        click.echo("nothing was found")
        return
    columns = [
        Column(title="check"),
        Column(title="found", align="right"),
        Column(title="tokens", align="right"),
        Column(title="what", fit="fold"),
    ]
    click.echo()
    print_table(columns, _rows(groups))
    click.echo()
    say("each in full, with why and what to do: --check CODE; about one tool: --tool NAME")


def _print_head(checkup: Checkup) -> None:
    weights, total = checkup.weights, checkup.tokens
    print_text(
        f"{plural(len(weights), 'tool')}, {total:,} prompt tokens when all are offered, "
        f"{total // len(weights):,} each on average"
    )
    heaviest = [f"{name} {tokens:,}" for name, tokens in list(weights.items())[:_HEAVIEST]]
    print_text(f"heaviest: {', '.join(heaviest)}")


def _rows(groups: Iterable[tuple[Kind, Sequence[Finding]]]) -> Iterator[tuple[object, ...]]:
    """A row a kind, below a row for its severity."""
    severity = ""
    for kind, found in groups:
        if kind.severity != severity:
            severity = kind.severity
            yield f"{severity}s", "", "", ""
        tokens = sum(finding.tokens for finding in found)
        yield f"  {kind.code}", f"{len(found):,}", f"{tokens:,}" if tokens else "", kind.title


def print_kinds(checkup: Checkup, *, limit: int | None) -> None:
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
        _print_findings(found[:limit])
        if limit and len(found) > limit:
            say(f"{limit:,} of {len(found):,} shown (--limit 0 for all)")


def _print_findings(found: Sequence[Finding]) -> None:
    columns = [Column(title="tool", fit="fold"), Column(title="what", fit="fold")]
    rows: list[tuple[object, ...]] = [(listed(one.tools, shown=1), one.what) for one in found]
    if any(one.tokens for one in found):
        columns.append(Column(title="tokens", align="right"))
        rows = [(*row, f"{one.tokens:,}") for row, one in zip(rows, found, strict=True)]
    print_table(columns, rows)


def print_tools(checkup: Checkup) -> None:
    """One tool after the other: what it costs, and what was found."""
    for at, (name, tokens) in enumerate(sorted(checkup.weights.items())):
        if at:
            click.echo()
        _print_tool(checkup, name, tokens)


def _print_tool(checkup: Checkup, name: str, tokens: int) -> None:
    print_text(f"{name}: {tokens:,} tokens")
    found = [one for one in checkup.findings if name in one.tools]
    if not found:
        click.echo("nothing was found")
        return
    columns = [
        Column(title="severity"),
        Column(title="check"),
        Column(title="what", fit="fold"),
    ]
    click.echo()
    print_table(columns, ((one.kind.severity, one.kind.code, one.what) for one in found))


_SHOWN = 20
_MANY = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """What to examine, and what to look for."""

    files: tuple[str, ...]
    codes: tuple[str, ...]
    tools: tuple[str, ...]
    providers: tuple[str, ...]
    store_url: str


@click.command(
    epilog="""\b
Examples:
  agentkit tools doctor
  agentkit tools doctor catalogue.jsonl.gz
  agentkit tools doctor --check confused --limit 50"""
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--check", "codes", multiple=True, metavar="CODE", help="Only this finding, each in full."
)
@click.option("--tool", "names", multiple=True, metavar="NAME", help="Only this tool, in full.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    type=click.Choice(PROVIDERS),
    help=f"Whose rules to check.  [default: {', '.join(DEFAULT_PROVIDERS)}]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Most findings of a kind, 0 for all.  [default: {_SHOWN}, all with --json]",
)
@click.option(
    "--exit-code", "with_exit_code", is_flag=True, help="Exit status 1 when there are errors."
)
@store_option
@json_option
def doctor(
    files: tuple[str, ...],
    codes: tuple[str, ...],
    names: tuple[str, ...],
    providers: tuple[str, ...],
    *,
    limit: int | None,
    with_exit_code: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Look for what is wrong with a catalogue of tools, without a model.

    What it costs in tokens; texts that are missing, empty or unclean; types that are not declared;
    near duplicates; pairs that retrieval confuses, with the words that cause it; names that stand
    in each other's way; schemas that providers refuse; tools that episodes never used.

    Each FILE is examined instead of the library, and several as one catalogue: JSON or JSON lines,
    plain or .gz, as 'tools import' reads it, '-' for stdin; or FILE.py[:NAME].
    """
    request = _Request(
        files=files, codes=codes, tools=names, providers=providers, store_url=store_url
    )
    checkup = _examined(request)
    if as_json:
        print_json(checkup.to_json(limit=limit or None))
    elif codes:
        print_kinds(checkup, limit=_SHOWN if limit is None else limit or None)
    elif names:
        print_tools(checkup)
    else:
        print_overview(checkup)
    if with_exit_code and any(finding.kind.severity == "error" for finding in checkup.findings):
        raise click.exceptions.Exit(1)


def _examined(request: _Request) -> Checkup:
    unknown = sorted(set(request.codes) - KINDS.keys())
    if unknown:
        close = get_close_matches(unknown[0], KINDS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(
            f"there is no finding {', '.join(map(repr, unknown))}{meant} "
            f"The codes are {', '.join(KINDS)}"
        )
    if request.files:
        definitions = [one for name in request.files for one in _read(name)]
        catalogue = Catalogue.of(definitions, providers=request.providers)
    else:
        with opened_to_read(request.store_url) as store:
            catalogue = Catalogue.of(
                store.load().definitions, episodes=store.select(), providers=request.providers
            )
    number = len(catalogue.library)
    if number > _MANY:
        told = LineProgress(f"Examining {plural(number, 'tool')}")
        catalogue = replace(catalogue, progress=told)
    return examine(catalogue, codes=request.codes, tools=request.tools)


def _read(name: str) -> Iterable[ToolDefinition]:
    """The definitions of a file; what is unusable in it is said and left out."""
    if name.partition(":")[0].endswith(".py"):
        return [tool.definition for tool in load_tools([name])]
    batch = read_definitions(name)
    say_some(f"{name}: entry {one.index + 1} is unusable: {one.reason}" for one in batch.rejected)
    return batch.definitions
