"""What ``agentkit tools doctor`` shows to people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.output import Column, plural, print_table, say
from agentkit.evaluation.doctor.checkup import Checkup
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed

_HEAVIEST = 3
_LEAST_SHARE = 0.005


def print_overview(checkup: Checkup) -> None:
    """A few numbers, then one row a kind of finding."""
    _print_head(checkup)
    groups = list(checkup.grouped())
    if not groups:
        click.echo("nothing was found")
        return
    columns = [
        Column(title="severity"),
        Column(title="check"),
        Column(title="found", align="right"),
        Column(title="tokens", align="right"),
        Column(title="what", fit="fold"),
    ]
    click.echo()
    print_table(columns, (_row(kind, found) for kind, found in groups))
    _print_outlook(checkup)


def _print_head(checkup: Checkup) -> None:
    weights = checkup.weights
    if not weights:
        click.echo("there are no tools")
        return
    average = checkup.tokens // len(weights)
    click.echo(
        f"{plural(len(weights), 'tool')}, {checkup.tokens:,} prompt tokens when all are offered, "
        f"{average:,} each on average"
    )
    shares = sorted(checkup.tokens_by_field.items(), key=lambda pair: -pair[1])
    total = checkup.tokens or 1
    told = [f"{n / total:.0%} {field}" for field, n in shares if n / total >= _LEAST_SHARE]
    click.echo(f"where they go: {', '.join(told)}")
    heaviest = [f"{weight.tool} {weight.tokens:,}" for weight in weights[:_HEAVIEST]]
    click.echo(f"heaviest: {', '.join(heaviest)}")


def _row(kind: Kind, found: Sequence[Finding]) -> tuple[object, ...]:
    tokens = sum(finding.tokens for finding in found)
    return kind.severity, kind.code, f"{len(found):,}", f"{tokens:,}" if tokens else "", kind.title


def _print_outlook(checkup: Checkup) -> None:
    say("each in full, with why and what to do: --check CODE, or --tool NAME")
    words, contracts = checkup.proposals("L2"), checkup.proposals("L1")
    if words or contracts:
        saved = sum(proposal.saved for proposal in (*words, *contracts))
        say(
            f"mended mechanically could be the texts of {plural(len(words), 'tool')} and the "
            f"schemas of {len(contracts):,}, {saved:,} tokens less: --proposals FILE, --apply"
        )


def print_details(checkup: Checkup, *, limit: int | None) -> None:
    """Every finding, kind by kind, with why it matters and what to do."""
    groups = list(checkup.grouped())
    if not groups:
        click.echo("nothing was found")
    for at, (kind, found) in enumerate(groups):
        if at:
            click.echo()
        click.echo(f"{kind.code} ({kind.severity}): {kind.title}")
        click.echo(click.wrap_text(kind.why, initial_indent="  why: ", subsequent_indent="  "))
        click.echo(click.wrap_text(kind.advice, initial_indent="  do: ", subsequent_indent="  "))
        click.echo()
        _print_findings(found[:limit])
        if limit and len(found) > limit:
            say(f"{limit:,} of {len(found):,} shown (--limit 0 for all)")


def _print_findings(found: Sequence[Finding]) -> None:
    if found[0].confusion is not None:
        _print_confusions(found)
        return
    columns = [Column(title="tool", fit="fold"), Column(title="what", fit="fold")]
    rows: list[tuple[object, ...]] = [(one.tools[0], one.what) for one in found]
    if any(one.tokens for one in found):
        columns.append(Column(title="tokens", align="right"))
        rows = [(*row, f"{one.tokens:,}") for row, one in zip(rows, found, strict=True)]
    print_table(columns, rows)


def _print_confusions(found: Sequence[Finding]) -> None:
    columns = [
        Column(title="tool", fit="fold"),
        Column(title="found behind", fit="fold"),
        Column(title="because of", fit="fold"),
        Column(title="only it says", fit="fold"),
    ]
    rows = []
    for finding in found:
        words = finding.confusion
        if words is not None:
            rows.append((*finding.tools, listed(words.shared), listed(words.own)))
    print_table(columns, rows)
