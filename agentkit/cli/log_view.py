"""Events for people, and what verifying them found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from agentkit.cli.output import plural, print_text, stdout
from agentkit.evaluation.results.texts import label_name, shown, visible
from agentkit.library.chain_check import ChainFault, FaultCode
from agentkit.library.event_chain import ChainHead
from agentkit.library.events import Author, LibraryEvent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_WIDEST_TOOL = 28
_MOST_LINES = 3
_LONGEST_REASON = 600
_UNDATED = "at an unknown time"

_STYLES = {
    "active": "green",
    "approved": "green",
    "validated": "green",
    "shadow": "cyan",
    "canary": "cyan",
    "overruled": "yellow",
    "marked": "yellow",
    "pinned": "yellow",
    "rejected": "red",
    "quarantined": "red",
    "proposer_quarantined": "red",
    "rolled_back": "red",
}
"""How a terminal shows what happened; everything else is plain."""


def render_events(events: Sequence[LibraryEvent]) -> None:
    """Print events day by day: what happened to which tool, who did it, and below it why."""
    from rich.cells import cell_len

    console = stdout()
    kinds = max((len(label_name(event.kind)) for event in events), default=0)
    tools = max((cell_len(shown(event.tool_name)) for event in events), default=0)
    widths = (len(str(events[-1].sequence)) if events else 0, kinds, min(tools, _WIDEST_TOOL))
    for day, some in groupby(events, key=lambda event: event.at[:10] or _UNDATED):
        console.print(day, style="bold")
        for event in some:
            for line in _lines(event, widths, console):
                console.print(line, soft_wrap=True)


def _lines(event: LibraryEvent, widths: tuple[int, int, int], console: Console) -> Iterator[Text]:
    from rich.text import Text

    number, kind, tool = widths
    line = Text("  ")
    line.append(f"{event.sequence:>{number}}  {_clock(event)}  ", style="dim")
    line.append(label_name(event.kind).ljust(kind), style=_STYLES.get(event.kind, ""))
    if tool:
        name = Text(shown(event.tool_name))
        name.truncate(tool, overflow="ellipsis", pad=True)
        line.append("  ").append_text(name)
    made = f", library version {event.library_version}" if event.digest_after else ""
    line.append(f"  {who(event.author)}{made}", style="dim")
    yield line
    indent = " " * (number + len(_clock(event)) + 6)
    why = Text(shown(event.reason, _LONGEST_REASON))
    rows = list(why.wrap(console, max(console.width - len(indent), 20))) if why else []
    for row in rows[:_MOST_LINES]:
        row.rstrip()
        yield Text(indent).append_text(row)
    if len(rows) > _MOST_LINES:
        yield Text(f"{indent}... (agentkit log {event.sequence})", style="dim")


def render_event(event: LibraryEvent) -> None:
    """Print all that one event says."""
    console = stdout()
    for title, text in _parts(event):
        first, *rest = visible(text).split("\n")
        console.print(f"{title:<10}{first}", soft_wrap=True)
        for line in rest:
            console.print(f"{'':<10}{line}", soft_wrap=True)


def _parts(event: LibraryEvent) -> Iterator[tuple[str, str]]:
    yield "event", f"{event.sequence}, {label_name(event.kind)}"
    yield "when", f"{event.at[:19].replace('T', ' ')} UTC"
    yield "who", who(event.author)
    if event.author.prompt_hash:
        yield "prompt", event.author.prompt_hash
    if event.reason:
        yield "why", event.reason
    if event.tool_name:
        yield "tool", event.tool_name
    if event.proposal_id:
        yield "proposal", event.proposal_id
    yield "library", f"version {event.library_version}"
    if event.digest_before:
        yield "before", event.digest_before
    if event.digest_after:
        yield "after", event.digest_after
    if event.evidence:
        yield "evidence", "\n".join(event.evidence)
    if event.facts:
        yield "facts", json.dumps(dict(event.facts), indent=2, ensure_ascii=False)
    yield "hash", event.hash
    yield "previous", event.previous or "none, this is the first"
    yield "signature", event.signature or "none"


def who(author: Author) -> str:
    """``Ada``, ``judge-1 (model)``."""
    name = shown(author.name) or "nobody"
    return name if author.kind == "person" else f"{name} ({shown(author.kind)})"


def _clock(event: LibraryEvent) -> str:
    return f"{shown(event.at[11:19]):<8}"


_AREAS: Mapping[str, frozenset[FaultCode]] = {
    "chain": frozenset({"gap", "order", "link", "unreadable", "clock"}),
    "signatures": frozenset({"unsigned", "signature", "unchecked"}),
    "end": frozenset({"head"}),
    "definitions": frozenset({"definition", "untold"}),
}
"""What is looked at, and what may be found there."""

_SHOWN = 10
_VERDICT_INDENT = " " * 15


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
            print_text(line, indent=_VERDICT_INDENT)
    click.echo(f"  {'head':<13}{ChainHead.of(events[-1] if events else None)}")
    if any(not one.is_note for one in found):
        click.secho("the log was changed after it was written", fg="red", bold=True)


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
        return "not compared; --expect takes what 'agentkit log --head' printed before"
    return f"holds the end that was seen before, event {expected.sequence}"
