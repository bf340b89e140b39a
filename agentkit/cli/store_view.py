"""What copying, comparing, checking and compacting a store came to, for people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.output import Column, plural, print_table, print_text
from agentkit.evaluation.results.texts import shown
from agentkit.library.abilities import Compacted
from agentkit.library.copying.checking import StoreCheck
from agentkit.library.copying.comparing import Comparison
from agentkit.library.copying.copying import Amount, Copied

_SHOWN = 20
_INDENT = " " * 6


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


def render_check(found: StoreCheck) -> None:
    """Print what was read, each fault, and notes."""
    tools = f" ({plural(found.tools, 'tool')} in the newest)" if found.versions else ""
    versions = f"{plural(found.versions, 'version')}{tools}"
    parts = [versions, plural(found.events, "event"), plural(found.episodes, "episode")]
    click.echo(f"read  {_listed(parts)}")
    for note in found.notes[:_SHOWN]:
        print_text(f"note: {shown(note)}", indent=_INDENT)
    if len(found.notes) > _SHOWN:
        click.echo(f"{_INDENT}... and {len(found.notes) - _SHOWN:,} more notes (--json names all)")
    if found.is_sound:
        click.echo("sound: everything is as it was written")
        return
    click.echo()
    columns = (Column(title="where", fit="fold"), Column(title="what is wrong", fit="fold"))
    rows = [(one.place, one.message) for one in found.faults[:_SHOWN]]
    print_table(columns, rows)
    if len(found.faults) > _SHOWN:
        click.echo(f"... and {len(found.faults) - _SHOWN:,} more (--json names all)")
    click.secho(f"damaged: {plural(len(found.faults), 'fault')}", fg="red", bold=True)


def render_compacted(done: Compacted | None) -> None:
    """Print what room was given back."""
    if done is None:
        click.echo("nothing to do: this kind of store has no room to give back")
        return
    given = done.bytes_before - done.bytes_after
    told = f"{given:,} bytes given back" if given > 0 else "there was nothing to give back"
    click.echo(f"{done.bytes_before:,} bytes before, {done.bytes_after:,} now: {told}")


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
