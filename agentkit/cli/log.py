"""``agentkit log``: who changed the library, when and why, and whether anybody changed that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from agentkit.cli.options import FromZero, StoreUrl, command
from agentkit.cli.output import Output, fold, listing, one_line, print_line, right, say
from agentkit.cli.stores import opened_to_read
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.library import Store
from agentkit.library.chain import key_text, key_texts, read_verifier, verify_chain, verify_library
from agentkit.library.changes import missing_tool
from agentkit.library.events import ChainHead, EventKind, LibraryEvent
from agentkit.tools.error_messages import plural

_LONGEST_REASON = 600


@command()
def log(
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
) -> Output:
    """List what happened to the library, oldest first; --json has all that each event says.

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
      agentkit log --head > head.txt
      agentkit log --verify --expect "$(cat head.txt)"
    """
    if (expect is not None or key_file) and not verify:
        raise UsageError("--expect and --key-file belong to --verify; add it")
    with opened_to_read(store_url) as store:
        events = store.events()
        if verify:
            return _verify(store, events, key_file, signed_from, expect)
        if tool:
            events = _about(store, events, tool)
    if head:
        end = ChainHead.of(events[-1] if events else None)
        record = {"sequence": end.sequence, "hash": end.hash}
        return Output(record=record, view=lambda: click.echo(str(end)))
    found = [one for one in events if kind in {None, one.kind}]
    kept = found[-limit:] if limit else found
    older = len(found) - len(kept)
    rest = f", {older:,} older (--limit 0 for all)" if older else ""
    return listing(
        [{**event.to_json(), "hash": event.hash} for event in kept],
        [
            right("#"),
            "when (UTC)",
            "what",
            fold("tool"),
            right("version"),
            fold("who"),
            fold("why"),
        ],
        map(_row, kept),
        note=f"{plural(len(kept), 'event')}{rest}",
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


def _row(event: LibraryEvent) -> tuple[object, ...]:
    who = shown(event.author.name) or "nobody"
    return (
        event.sequence,
        event.at[:19].replace("T", " ") or "at an unknown time",
        label_name(event.kind),
        shown(event.tool_name),
        event.library_version if event.digest_after else "",
        who if event.author.kind == "person" else f"{who} ({shown(event.author.kind)})",
        one_line(shown(event.reason, _LONGEST_REASON)),
    )


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
            print_line(f"{'note' if one.is_note else one.code}: {shown(one.message)}")
        verdict = "the log was changed after it was written" if faults else "the log is intact"
        click.secho(f"{plural(len(events), 'event')}: {verdict}", fg="red" if faults else None)
        click.echo(f"head {head}")
        if not texts:
            say("signatures were not checked: no key was given (--key-file)")
        if expect is None:
            say("--expect HEAD, with what --head printed before, shows whether the end was cut off")

    return Output(record=record, view=view, failed=bool(faults))
