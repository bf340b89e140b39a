"""What copying, comparing, checking and compacting a store came to, for people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.output import Column, plural, print_table
from agentkit.library.copying.comparing import Comparison
from agentkit.library.copying.copying import Amount, Copied


def render_copied(report: Copied, *, episodes: bool) -> None:
    """Print what was copied, and what was compared afterwards."""
    if report.held != Amount():
        click.echo(f"held      {_amount(report.held, episodes=episodes)}")
    click.echo(f"copied    {_amount(report.copied, episodes=episodes)}")
    click.echo(f"the same  {_same(report.compared, episodes=episodes)}")


def render_comparison(found: Comparison, *, episodes: bool) -> None:
    """Print what is the same in two stores, and where they part."""
    click.echo(f"the same  {_same(found, episodes=episodes)}")
    if found.differences:
        click.echo()
        columns = (Column(title="part"), Column(title="where"), Column(title="what", fit="fold"))
        rows = [(one.part, one.place, one.message) for one in found.differences]
        print_table(columns, rows)


def _amount(amount: Amount, *, episodes: bool) -> str:
    parts = [plural(amount.versions, "version"), plural(amount.events, "event")]
    return _listed([*parts, plural(amount.episodes, "episode")] if episodes else parts)


def _same(found: Comparison, *, episodes: bool) -> str:
    versions = plural(found.versions, "version")
    tools = f" ({plural(found.tools, 'tool')} in the newest)" if found.versions else ""
    parts = [f"{versions}{tools}", plural(found.events, "event")]
    return _listed([*parts, plural(found.episodes, "episode")] if episodes else parts)


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
