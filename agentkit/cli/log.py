"""``agentkit log``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import click

from agentkit.cli.options import Answers, FromZero, StoreUrl, command
from agentkit.cli.output import Output, fold, listing, one_line, print_facts, print_text, right, say
from agentkit.cli.stores import manager_of, opened_if_there, opened_to_read, tool_traffic
from agentkit.errors import StoreLookupError, UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.worth import Worth, worth_of
from agentkit.library import Store
from agentkit.library.chain import key_text, key_texts, read_verifier, verify_chain, verify_library
from agentkit.library.changes import missing_tool
from agentkit.library.events import Author, ChainHead, EventKind, LibraryEvent
from agentkit.tools.error_messages import plural

_LONGEST_REASON = 600


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
    answers: Answers,
    store_url: StoreUrl,
) -> Output:
    """List what happened to the library, oldest first, or show all about event NUMBER.

    With NUMBER or --tool, a promotion tells what it is worth on later traffic.

    Each event holds the hash of the one before it, so --verify finds what was changed, dropped or
    moved since; the exit status is then 1. Keep what --head prints away from the store: only it can
    show that the end was cut off. Keys of signatures also come from the variable
    AGENTKIT_AUDIT_KEY, or from the file that AGENTKIT_AUDIT_KEY_FILE names.

    Args:
        tool (NAME): Only this tool.
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
        events = store.events()
        if verify:
            return _verify(store, events, key_file, signed_from, expect)
        if tool:
            events = _about(store, events, tool)
        told = [one for one in events if one.sequence == number or (tool and number is None)]
        worths = _worths(store, answers, [one for one in told if one.kind == "active"])
    if head:
        end = ChainHead.of(events[-1] if events else None)
        record = {"sequence": end.sequence, "hash": end.hash}
        return Output(record=record, view=lambda: click.echo(str(end)))
    if number is not None:
        return _show(events, number, worths)
    found = [one for one in events if kind in {None, one.kind}]
    kept = found[-limit:] if limit else found
    older = len(found) - len(kept)
    rest = f", {older:,} older (--limit 0 for all)" if older else ""
    return listing(
        [_record(event, worths) for event in kept],
        [
            right("#"),
            "when (UTC)",
            "what",
            fold("tool"),
            right("version"),
            fold("who"),
            fold("why"),
        ],
        [_row(event, worths) for event in kept],
        note=f"{plural(len(kept), 'event')}{rest}; 'agentkit log NUMBER' shows one",
    )


def _about(store: Store, events: Sequence[LibraryEvent], tool: str) -> Sequence[LibraryEvent]:
    """The events about a tool, also those that wrote many at once.

    Raises:
        ToolNotFoundError: Nothing is known of a tool of that name.
    """
    written = {one.version for one in store.history(tool)}
    found = [
        event
        for event in events
        if event.tool_name == tool or (event.kind == "written" and event.library_version in written)
    ]
    if not found and not written:
        raise missing_tool(tool, store.load())
    return found


def _worths(store: Store, answers: str, promotions: Sequence[LibraryEvent]) -> Mapping[str, Worth]:
    """What promotions are worth on later traffic, by proposal; those that tell something."""
    if not promotions:
        return {}
    manager = manager_of(store)
    with opened_if_there(answers) as evaluations:
        traffic = cache(tool_traffic(store, evaluations))
        found = {
            one.proposal_id: worth_of(
                one.proposal_id, manager.ledger, manager.revision, traffic(one.tool_name)
            )
            for one in promotions
        }
    return {name: worth for name, worth in found.items() if worth is not None}


def _row(event: LibraryEvent, worths: Mapping[str, Worth]) -> tuple[object, ...]:
    is_told = event.kind == "active" and event.proposal_id in worths
    worth = f"; {worths[event.proposal_id]}" if is_told else ""
    return (
        event.sequence,
        event.at[:19].replace("T", " ") or "at an unknown time",
        label_name(event.kind),
        shown(event.tool_name),
        event.library_version if event.digest_after else "",
        _who(event.author),
        one_line(shown(event.reason, _LONGEST_REASON)) + worth,
    )


def _who(author: Author) -> str:
    """``Ada``, ``judge-1 (model)``."""
    name = shown(author.name) or "nobody"
    return name if author.kind == "person" else f"{name} ({shown(author.kind)})"


def _show(events: Sequence[LibraryEvent], number: int, worths: Mapping[str, Worth]) -> Output:
    """All that one event says.

    Raises:
        StoreLookupError: There is no such event.
    """
    event = next((one for one in events if one.sequence == number), None)
    if event is None:
        last = events[-1].sequence if events else 0
        raise StoreLookupError(f"there is no event {number}; the last one is {last}")
    record = _record(event, worths)
    facts = {label_name(name): value for name, value in record.items() if value}
    facts["author"] = _who(event.author)
    facts |= {"worth": str(worths[event.proposal_id])} if "worth" in record else {}
    rows = [(name, _as_text(value)) for name, value in facts.items()]
    return Output(record=record, view=lambda: print_facts(rows))


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def _record(event: LibraryEvent, worths: Mapping[str, Worth]) -> dict[str, Any]:
    worth = worths.get(event.proposal_id) if event.kind == "active" else None
    record = {**event.to_json(), "hash": event.hash}
    return record if worth is None else {**record, "worth": worth.to_json()}


def _verify(
    store: Store,
    events: Sequence[LibraryEvent],
    key_files: Sequence[str],
    signed_from: int,
    expect: str | None,
) -> Output:
    texts = tuple(map(key_text, key_files)) or key_texts()
    found = verify_chain(
        events,
        verifier=read_verifier(texts) if texts else None,
        signed_from=signed_from,
        expected_head=None if expect is None else ChainHead.parse(expect),
    )
    found += verify_library(store, events)
    faults = [fault for fault in found if not fault.is_note]
    notes = [fault for fault in found if fault.is_note]
    head = str(ChainHead.of(events[-1] if events else None))
    record = {
        "events": len(events),
        "head": head,
        "is_whole": not faults,
        "faults": [asdict(fault) for fault in faults],
        "notes": [asdict(fault) for fault in notes],
    }

    def view() -> None:
        for one in (*faults, *notes):
            print_text(f"{'note' if one.is_note else one.code}: {shown(one.message)}")
        verdict = "the log was changed after it was written" if faults else "the log is intact"
        click.secho(f"{plural(len(events), 'event')}: {verdict}", fg="red" if faults else None)
        click.echo(f"head {head}")
        if not texts:
            say("signatures were not checked: no key was given (--key-file)")
        if expect is None:
            say("--expect HEAD, with what --head printed before, shows whether the end was cut off")

    return Output(record=record, view=view, failed=bool(faults))
