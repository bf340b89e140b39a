"""``agentkit log``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, get_args

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, print_text, say, stdout
from agentkit.cli.stores import opened_to_read
from agentkit.errors import StoreLookupError, ToolNotFoundError, UsageError
from agentkit.evaluation.results.texts import label_name, shown, visible
from agentkit.library import Store
from agentkit.library.chain_check import ChainFault, FaultCode, verify_chain, verify_library
from agentkit.library.event_chain import ChainHead
from agentkit.library.events import Author, EventKind, LibraryEvent
from agentkit.library.signing import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    key_text,
    key_texts,
    read_verifier,
)
from agentkit.library.store import ToolRevision

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


@click.command(
    short_help="Show and verify who changed the library.",
    epilog=f"""\b
Examples:
  agentkit log --tool get_weather
  agentkit log 12
  agentkit log --head > head.txt
  agentkit log --verify --expect "$(cat head.txt)"

\b
Keys of signatures also come from the variable {KEY_VARIABLE}, or from the
file that {KEY_FILE_VARIABLE} names.""",
)
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option("--tool", metavar="NAME", help="Only this tool; --json adds its definitions.")
@click.option("--proposal", metavar="ID", help="Only the proposal whose id begins so.")
@click.option("--kind", type=click.Choice(get_args(EventKind)), metavar="WORD", help="Only these.")
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the newest N events, 0 for all.",
)
@click.option("--head", is_flag=True, help="Print where the log ends, as NUMBER:HASH.")
@click.option("--verify", is_flag=True, help="Look for what was changed after it was written.")
@click.option("--expect", metavar="HEAD", help="With --verify: what --head printed earlier.")
@click.option(
    "--key-file",
    "key_files",
    multiple=True,
    metavar="FILE",
    help="With --verify: a key of signatures, an HMAC secret or an ed25519 key in PEM, of which "
    "the public half will do.",
)
@click.option(
    "--signed-from",
    default=1,
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="With --verify: the first event that must be signed.",
)
@store_option
@json_option
def log(
    number: int | None,
    limit: int,
    *,
    tool: str | None,
    proposal: str | None,
    kind: str | None,
    head: bool,
    verify: bool,
    expect: str | None,
    key_files: Sequence[str],
    signed_from: int,
    store_url: str,
    as_json: bool,
) -> None:
    """List what happened to the library, oldest first, or show all about event NUMBER.

    Each event holds the hash of the one before it, so --verify finds what was changed, dropped or
    moved since; the exit status is then 1. Keep what --head prints away from the store: only it can
    show that the end was cut off.
    """
    if (expect is not None or key_files) and not verify:
        raise UsageError("--expect and --key-file belong to --verify; add it")
    if (number is not None) + head + verify > 1:
        raise UsageError("NUMBER, --head and --verify exclude each other; give one")
    with opened_to_read(store_url) as store:
        if verify:
            _verify(store, key_files, signed_from, expect, as_json=as_json)
            return
        events = store.events()
        if head:
            end = ChainHead.of(events[-1] if events else None)
            as_data = {"sequence": end.sequence, "hash": end.hash}
            print_json(as_data) if as_json else click.echo(str(end))
        elif number is not None:
            event = _event(events, number)
            print_json(_record(event)) if as_json else render_event(event)
        else:
            revisions = _revisions(store, tool, events) if tool else ()
            made = {one.version: one for one in revisions}
            found = [
                event
                for event in events
                if (not tool or _is_about(event, tool, made))
                and kind in {None, event.kind}
                and event.proposal_id.startswith(proposal or "")
            ]
            _list(found, limit, made, as_json=as_json)


def _list(
    found: Sequence[LibraryEvent],
    limit: int,
    made: Mapping[int, ToolRevision],
    *,
    as_json: bool,
) -> None:
    kept = found[-limit:] if limit else found
    if as_json:
        print_json([_record(event, made.get(event.library_version)) for event in kept])
        return
    render_events(kept)
    older = len(found) - len(kept)
    rest = f", {older:,} older (--limit 0 for all)" if older else ""
    say(f"{plural(len(kept), 'event')}{rest}; 'agentkit log NUMBER' shows all about one")


def _revisions(store: Store, tool: str, events: Sequence[LibraryEvent]) -> Sequence[ToolRevision]:
    """The definitions that a tool has had.

    Raises:
        ToolNotFoundError: Nothing is known of a tool of that name.
    """
    revisions = store.history(tool)
    if not revisions and not any(event.tool_name == tool for event in events):
        library = store.load()
        raise ToolNotFoundError(tool, nearest=library.nearest(tool), version=library.version)
    return revisions


def _event(events: Sequence[LibraryEvent], number: int) -> LibraryEvent:
    event = next((one for one in events if one.sequence == number), None)
    if event is None:
        last = events[-1].sequence if events else 0
        raise StoreLookupError(
            f"there is no event {number}; the last one is {last} ('agentkit log')"
        )
    return event


def _is_about(event: LibraryEvent, tool: str, made: Mapping[int, ToolRevision]) -> bool:
    """Whether an event is about a tool, also where it wrote many at once."""
    wrote = event.kind == "written" and event.library_version in made
    return event.tool_name == tool or wrote


def _record(event: LibraryEvent, revision: ToolRevision | None = None) -> dict[str, Any]:
    """An event as a JSON object, with the definition that it made where one was asked for."""
    record = {**event.to_json(), "hash": event.hash}
    if revision is not None and (event.digest_after or event.kind == "written"):
        definition = revision.definition
        record["definition"] = None if definition is None else definition.to_json()
    return record


def _verify(
    store: Store,
    key_files: Sequence[str],
    signed_from: int,
    expect: str | None,
    *,
    as_json: bool,
) -> None:
    texts = tuple(map(key_text, key_files)) or key_texts()
    expected = None if expect is None else ChainHead.parse(expect)
    events = store.events()
    found = verify_chain(
        events,
        verifier=read_verifier(texts) if texts else None,
        signed_from=signed_from,
        expected_head=expected,
    )
    found += verify_library(store, events)
    if as_json:
        print_json(_verified(events, found))
    else:
        render_verdict(events, found, has_key=bool(texts), expected=expected)
    if any(not fault.is_note for fault in found):
        raise click.exceptions.Exit(1)


def _verified(events: Sequence[LibraryEvent], found: Sequence[ChainFault]) -> dict[str, Any]:
    faults = [fault.to_json() for fault in found if not fault.is_note]
    return {
        "events": len(events),
        "head": str(ChainHead.of(events[-1] if events else None)),
        "is_whole": not faults,
        "faults": faults,
        "notes": [fault.to_json() for fault in found if fault.is_note],
    }
