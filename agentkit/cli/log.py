"""``agentkit log``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import click

from agentkit.cli.log_view import render_event, render_events, render_verdict
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import opened_to_read
from agentkit.errors import StoreLookupError, ToolNotFoundError, UsageError
from agentkit.library import Store
from agentkit.library.chain_check import ChainFault, verify_chain, verify_library
from agentkit.library.event_chain import ChainHead
from agentkit.library.events import EventKind, LibraryEvent
from agentkit.library.signing import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    key_text,
    key_texts,
    read_verifier,
)
from agentkit.library.store import ToolRevision


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
