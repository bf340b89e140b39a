"""``agentkit audit``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import click

from agentkit.cli.audit_verdict import render_verdict
from agentkit.cli.audit_view import render_event, render_events
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import opened_to_read
from agentkit.errors import StoreError
from agentkit.library.chain import ChainHead
from agentkit.library.chain_faults import ChainFault, verify_chain
from agentkit.library.chain_library import verify_library
from agentkit.library.events import EventKind, LibraryEvent
from agentkit.library.signing import (
    KEY_FILE_VARIABLE,
    KEY_VARIABLE,
    key_text,
    key_texts,
    read_verifier,
)


@click.group()
def audit() -> None:
    """Look at who changed the library, when and why.

    Every step of a proposal and every other write is an event. Each event holds the hash of the
    one before it; 'verify' finds one that was changed, dropped or moved since.
    """


@audit.command(
    "list",
    epilog="""\b
Examples:
  agentkit audit list
  agentkit audit list --tool get_weather --limit 0
  agentkit audit list --proposal evidence-3f2a91 --json""",
)
@click.option("--tool", metavar="NAME", help="Only events about this tool.")
@click.option("--proposal", metavar="ID", help="Only events about the proposal whose id begins so.")
@click.option(
    "--kind",
    type=click.Choice(get_args(EventKind)),
    metavar="WORD",
    help="Only events that say so.",
)
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the newest N events, 0 for all.",
)
@store_option
@json_option
def list_(limit: int, store_url: str, as_json: bool, **filters: str | None) -> None:
    """List events, oldest first."""
    found = [event for event in _events(store_url) if _fits(event, **filters)]
    kept = found[-limit:] if limit else found
    if as_json:
        print_json([_record(event) for event in kept])
        return
    render_events(kept)
    older = (
        f", {len(found) - len(kept):,} older (--limit 0 for all)" if len(kept) < len(found) else ""
    )
    say(f"{plural(len(kept), 'event')}{older}; agentkit audit show NUMBER tells all about one")


@audit.command(
    short_help="Show all that the event NUMBER says.",
    epilog="""\b
Example:
  agentkit audit show 12""",
)
@click.argument("number", type=click.IntRange(min=1))
@store_option
@json_option
def show(number: int, store_url: str, as_json: bool) -> None:
    """Show all that the event NUMBER says, with its hash and its signature."""
    with opened_to_read(store_url) as store:
        event = next(iter(store.events(after=number - 1)), None)
    if event is None or event.sequence != number:
        raise StoreError(f"there is no event {number}; 'agentkit audit list' shows those there are")
    print_json(_record(event)) if as_json else render_event(event)


@audit.command(
    epilog="""\b
Examples:
  agentkit audit head > head.txt"""
)
@store_option
@json_option
def head(store_url: str, as_json: bool) -> None:
    """Print where the chain of events ends now, as NUMBER:HASH.

    Keep it away from the store: only who remembers it can show that the end was cut off later.
    """
    events = _events(store_url)
    end = ChainHead.of(events[-1] if events else None)
    print_json({"sequence": end.sequence, "hash": end.hash}) if as_json else click.echo(str(end))


@audit.command(
    short_help="Look for what was changed after it was written.",
    epilog=f"""\b
Examples:
  agentkit audit verify
  agentkit audit verify --expect "$(cat head.txt)"
  agentkit audit verify --key-file public.pem --signed-from 120

\b
Keys also come from the variable {KEY_VARIABLE}, or from the file that
{KEY_FILE_VARIABLE} names.""",
)
@click.option(
    "--key-file",
    "key_files",
    multiple=True,
    metavar="FILE",
    help="A key that events are signed with: the secret of an HMAC, or an ed25519 key in PEM, of "
    "which the public half will do. Several may be given when the key was changed.",
)
@click.option(
    "--signed-from",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="The first event that has to be signed.",
)
@click.option("--expect", metavar="HEAD", help="What 'audit head' printed at an earlier time.")
@store_option
@json_option
def verify(
    key_files: Sequence[str], signed_from: int, expect: str | None, store_url: str, as_json: bool
) -> None:
    """Look for what was changed after it was written; the exit status is 1 when something was.

    Looked at are the chain of events, their signatures when a key is given, the end of the chain
    when an earlier one is given, and the definitions of which events tell.
    """
    texts = tuple(map(key_text, key_files)) or key_texts()
    expected = None if expect is None else ChainHead.parse(expect)
    with opened_to_read(store_url) as store:
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


def _fits(event: LibraryEvent, *, tool: str | None, proposal: str | None, kind: str | None) -> bool:
    return (
        tool in {None, event.tool_name}
        and kind in {None, event.kind}
        and event.proposal_id.startswith(proposal or "")
    )


def _events(store_url: str) -> Sequence[LibraryEvent]:
    with opened_to_read(store_url) as store:
        return store.events()


def _record(event: LibraryEvent) -> dict[str, Any]:
    return {**event.to_json(), "hash": event.hash}


def _verified(events: Sequence[LibraryEvent], found: Sequence[ChainFault]) -> dict[str, Any]:
    faults = [fault.to_json() for fault in found if not fault.is_note]
    return {
        "events": len(events),
        "head": str(ChainHead.of(events[-1] if events else None)),
        "is_whole": not faults,
        "faults": faults,
        "notes": [fault.to_json() for fault in found if fault.is_note],
    }
