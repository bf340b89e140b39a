"""What verifying an audit trail found, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from agentkit.cli.output import plural, print_text
from agentkit.evaluation.results.texts import shown
from agentkit.library.chain import ChainHead
from agentkit.library.chain_faults import ChainFault, FaultCode
from agentkit.library.events import LibraryEvent

_AREAS: Mapping[str, frozenset[FaultCode]] = {
    "chain": frozenset({"gap", "order", "link", "unreadable", "clock"}),
    "signatures": frozenset({"unsigned", "signature", "unchecked"}),
    "end": frozenset({"head"}),
    "definitions": frozenset({"definition", "untold"}),
}
"""What is looked at, and what may be found there."""

_SHOWN = 10
_INDENT = " " * 15


def render_verdict(
    events: Sequence[LibraryEvent],
    found: Sequence[ChainFault],
    *,
    has_key: bool,
    expected: ChainHead | None,
) -> None:
    """Print what was looked at, what was not, and each fault.

    Args:
        events: All events.
        found: Faults and notes.
        has_key: Whether signatures could be checked.
        expected: The earlier end that was asked for.
    """
    click.echo(_span(events))
    fine = {
        "chain": "whole",
        "signatures": "made with the key" if has_key else "none, and no key was given",
        "end": _end(expected),
        "definitions": "as the events say",
    }
    for area, codes in _AREAS.items():
        own = [one for one in found if one.code in codes]
        faults = [one for one in own if not one.is_note]
        words = plural(len(faults), "fault") if faults else fine[area]
        if any(one.code == "unchecked" for one in own):
            words = "not checked"
        click.echo(f"  {area:<13}{click.style(words, fg='red') if faults else words}")
        for line in _details(own):
            print_text(line, indent=_INDENT)
    click.echo(f"  {'head':<13}{ChainHead.of(events[-1] if events else None)}")
    if any(not one.is_note for one in found):
        click.secho("the audit trail was changed after it was written", fg="red", bold=True)


def _details(found: Sequence[ChainFault]) -> Iterator[str]:
    ordered = sorted(found, key=lambda one: one.is_note)
    for one in ordered[:_SHOWN]:
        yield f"{'note: ' if one.is_note else ''}{shown(one.message)}"
    if len(ordered) > _SHOWN:
        yield f"... and {len(ordered) - _SHOWN:,} more (--json names all)"


def _span(events: Sequence[LibraryEvent]) -> str:
    if not events:
        return "no events"
    days = sorted({shown(events[0].at[:10]), shown(events[-1].at[:10])})
    return f"{plural(len(events), 'event')}, {' to '.join(days)}"


def _end(expected: ChainHead | None) -> str:
    if expected is None:
        return "not compared; --expect takes what 'audit head' printed before"
    return f"holds the end that was seen before, event {expected.sequence}"
