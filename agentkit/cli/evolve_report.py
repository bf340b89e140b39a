"""A round of evolution for people: what was suggested, what came of it, and why."""

from __future__ import annotations

import click

from agentkit.cli.output import Column, one_line, plural, print_table, say
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.results.wording import label_name
from agentkit.evolution.round import Considered, Round


def print_round(outcome: Round, store_url: str, *, dry_run: bool) -> None:
    """The proposals of a round, and what to do next.

    Args:
        outcome: The round.
        store_url: Where the library is.
        dry_run: Whether nothing was written.
    """
    print_table(
        [
            Column(title="proposal", fit="fold"),
            Column(title="tool", fit="fold"),
            Column(title="from"),
            Column(title="state"),
            Column(title="held-out gain", align="right"),
            Column(title="why", fit="cut"),
        ],
        [_row(one) for one in outcome.considered],
    )
    for silent in outcome.silent:
        say(f"{silent.proposer} could not be asked: {shown(silent.error, 200)}")
    promoted = len(outcome.promoted)
    changed = f", library version {outcome.after}" if promoted else ""
    told = f"{plural(len(outcome.considered), 'proposal')}, {promoted} promoted{changed}"
    click.echo(f"{told}; nothing was written" if dry_run else told, err=True)
    if not dry_run and any(one.record.is_open for one in outcome.considered):
        say(f"what waits: agentkit proposals list --open --store {store_url}")


def _row(one: Considered) -> tuple[str, ...]:
    record = one.record
    return (
        shown(record.proposal_id),
        shown(record.tool_name),
        shown(record.stream),
        label_name(record.state),
        _gain(one),
        one_line(shown(one.why, 300)),
    )


def _gain(one: Considered) -> str:
    if one.report is None or not one.report.statistics.get("tasks"):
        return ""
    numbers = one.report.statistics
    low, high = (100 * numbers[name] for name in ("gain_low", "gain_high"))
    return f"{100 * numbers['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
