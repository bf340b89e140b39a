"""What ``agentkit tools doctor`` shows to people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from agentkit.cli.output import Column, plural, print_table, print_text, say
from agentkit.evaluation.doctor.checkup import Checkup
from agentkit.evaluation.doctor.findings import Finding, Kind, listed

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
    _print_outlook(checkup)


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


def _print_outlook(checkup: Checkup) -> None:
    click.echo()
    say("each in full, with why and what to do: --check CODE; about one tool: --tool NAME")
    words, contracts = checkup.proposals("L2"), checkup.proposals("L1")
    saved = sum(proposal.saved for proposal in (*words, *contracts))
    parts = [f"the texts of {plural(len(words), 'tool')}"] if words else []
    parts += [f"the schemas of {plural(len(contracts), 'tool')}"] if contracts else []
    if parts:
        say(f"can be fixed mechanically: {' and '.join(parts)}, {saved:,} tokens less")
        say("these are written by --proposals FILE; texts are fixed by --apply")


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
