"""``agentkit log``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from agentkit.cli.options import AsJson, FromZero, StoreUrl, command
from agentkit.cli.output import (
    fold,
    one_line,
    plural,
    print_facts,
    print_json,
    print_table,
    print_text,
    right,
    say,
)
from agentkit.cli.stores import opened_to_read
from agentkit.errors import StoreLookupError, ToolNotFoundError, UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.library import Store
from agentkit.library.chain_check import ChainFault, FaultCode, verify_chain, verify_library
from agentkit.library.events import Author, ChainHead, EventKind, LibraryEvent
from agentkit.library.signing import key_text, key_texts, read_verifier
from agentkit.library.store import ToolRevision

_LONGEST_REASON = 600


def _row(event: LibraryEvent) -> tuple[object, ...]:
    return (
        event.sequence,
        event.at[:19].replace("T", " ") or "at an unknown time",
        label_name(event.kind),
        shown(event.tool_name),
        event.library_version if event.digest_after else "",
        who(event.author),
        one_line(shown(event.reason, _LONGEST_REASON)),
    )


def _facts(event: LibraryEvent) -> Iterator[tuple[str, str]]:
    """All that one event says."""
    facts = {
        "event": f"{event.sequence}, {label_name(event.kind)}",
        "when": f"{event.at[:19].replace('T', ' ')} UTC",
        "who": who(event.author),
        "prompt": event.author.prompt_hash,
        "why": event.reason,
        "tool": event.tool_name,
        "proposal": event.proposal_id,
        "library": f"version {event.library_version}",
        "before": event.digest_before,
        "after": event.digest_after,
        "evidence": "\n".join(event.evidence),
        "facts": event.facts and json.dumps(dict(event.facts), indent=2, ensure_ascii=False),
        "hash": event.hash,
        "previous": event.previous or "none, this is the first",
        "signature": event.signature or "none",
    }
    return ((name, value) for name, value in facts.items() if value)


def who(author: Author) -> str:
    """``Ada``, ``judge-1 (model)``."""
    name = shown(author.name) or "nobody"
    return name if author.kind == "person" else f"{name} ({shown(author.kind)})"


_AREAS: Mapping[str, frozenset[FaultCode]] = {
    "chain": frozenset({"gap", "order", "link", "unreadable", "clock"}),
    "signatures": frozenset({"unsigned", "signature", "unchecked"}),
    "end": frozenset({"head"}),
    "definitions": frozenset({"definition", "untold"}),
}
"""What is looked at, and what may be found there."""

_SHOWN = 10
_VERDICT_INDENT = " " * 15


def _print_verdict(
    events: Sequence[LibraryEvent],
    found: Sequence[ChainFault],
    *,
    has_key: bool,
    expected: ChainHead | None,
) -> None:
    """Print what was looked at, what was not, and each fault."""
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


@command()
def log(
    number: int | None = None,
    *,
    tool: str = "",
    kind: EventKind | None = None,
    limit: FromZero = 50,
    head: bool = False,
    verify: bool = False,
    expect: str | None = None,
    key_file: tuple[str, ...] = (),
    signed_from: int = 1,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """List what happened to the library, oldest first, or show all about event NUMBER.

    Each event holds the hash of the one before it, so --verify finds what was changed, dropped or
    moved since; the exit status is then 1. Keep what --head prints away from the store: only it can
    show that the end was cut off. Keys of signatures also come from the variable
    AGENTKIT_AUDIT_KEY, or from the file that AGENTKIT_AUDIT_KEY_FILE names.

    Args:
        tool (NAME): Only this tool; --json adds its definitions.
        kind (WORD): Only these.
        limit: Only the newest N events, 0 for all.
        head: Print where the log ends, as NUMBER:HASH.
        verify: Look for what was changed after it was written.
        expect (HEAD): With --verify: what --head printed earlier.
        key_file (FILE): With --verify: a key of signatures, an HMAC secret or an ed25519 key in
            PEM, of which the public half will do
        signed_from (NUMBER): With --verify: the first event that must be signed.

    Examples:
      agentkit log --tool get_weather
      agentkit log 12
      agentkit log --head > head.txt
      agentkit log --verify --expect "$(cat head.txt)"
    """
    if (expect is not None or key_file) and not verify:
        raise UsageError("--expect and --key-file belong to --verify; add it")
    if (number is not None) + head + verify > 1:
        raise UsageError("NUMBER, --head and --verify exclude each other; give one")
    with opened_to_read(store_url) as store:
        if verify:
            _verify(store, key_file, signed_from, expect, as_json=as_json)
            return
        events = store.events()
        if head:
            end = ChainHead.of(events[-1] if events else None)
            as_data = {"sequence": end.sequence, "hash": end.hash}
            print_json(as_data) if as_json else click.echo(str(end))
        elif number is not None:
            event = _event(events, number)
            print_json(_record(event)) if as_json else print_facts(_facts(event))
        else:
            revisions = _revisions(store, tool, events) if tool else ()
            made = {one.version: one for one in revisions}
            found = [
                event
                for event in events
                if (not tool or _is_about(event, tool, made)) and kind in {None, event.kind}
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
    columns = (right("#"), "when (UTC)", "what", fold("tool"), right("version"))
    print_table((*columns, fold("who"), fold("why")), map(_row, kept))
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
    faults = [fault for fault in found if not fault.is_note]
    if as_json:
        record = {
            "events": len(events),
            "head": str(ChainHead.of(events[-1] if events else None)),
            "is_whole": not faults,
            "faults": [fault.to_json() for fault in faults],
            "notes": [fault.to_json() for fault in found if fault.is_note],
        }
        print_json(record)
    else:
        _print_verdict(events, found, has_key=bool(texts), expected=expected)
    if faults:
        raise click.exceptions.Exit(1)
