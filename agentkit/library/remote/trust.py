"""What has to be shown before something from a library server is taken up.

With a key the library must be what its signed events say, so that neither the server nor anything
on the way has to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from agentkit.errors import StoreFormatError
from agentkit.library.chain_check import bulk_of, told_digests, verify_chain
from agentkit.library.events import ChainHead, LibraryEvent, Verifier
from agentkit.library.library import Library
from agentkit.library.remote.wire import Head, Ranges
from agentkit.library.store import AppliedChange, ToolRevision
from agentkit.tools.canonical import digest

Brought = Callable[[int], Mapping[str, str]]
"""Gives name and digest of what one version brought, as the server says; it is checked here."""

_SHOWN = 3


def check_events(
    events: Sequence[LibraryEvent],
    before: LibraryEvent | None,
    head: Head,
    *,
    verifier: Verifier | None,
    signed_from: int,
) -> None:
    """Refuse events that do not go on from those known, or that nobody with the key signed.

    Args:
        events: What is new.
        before: The last event that was checked earlier; None for none.
        head: What the server says is newest.
        verifier: Checks signatures; None believes the server.
        signed_from: The first event that has to be signed.

    Raises:
        StoreFormatError: One is not as it was written.
    """
    faults = verify_chain(events, before=before, verifier=verifier, signed_from=signed_from)
    wrong = [fault for fault in faults if not fault.is_note]
    if wrong:
        more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
        raise StoreFormatError(f"the chain of events is not whole: {wrong[0].message}{more}")
    last = events[-1] if events else before
    # Without a key the chain may not be known to its end.
    is_end = last is not None and last.sequence == head.events.sequence
    if last is not None and is_end and ChainHead.of(last) != head.events:
        raise StoreFormatError(f"event {last.sequence} is another one than the server's head names")


def told_by(event: LibraryEvent, brought: Brought) -> Mapping[str, str]:
    """The tools of which an event tells, with the digest of each; empty for one that is gone.

    Raises:
        StoreFormatError: What a very large change brought is not what its event says.
    """
    if not event.library_version:
        return {}
    told = dict(told_digests(event))
    bulk = bulk_of(event)
    if bulk is not None:
        found = brought(event.library_version)
        if (len(found), digest(dict(found))) != bulk:
            raise StoreFormatError(
                f"event {event.sequence} says that library version {event.library_version} "
                f"brought {bulk[0]:,} definitions; what the server lists are others"
            )
        told |= found
    return told


def told_after(
    before: Mapping[str, str], events: Iterable[LibraryEvent], brought: Brought
) -> dict[str, str]:
    """The digest of each tool of the library once some events had happened."""
    digests = dict(before)
    for event in events:
        for name, found in told_by(event, brought).items():
            if found:
                digests[name] = found
            else:
                digests.pop(name, None)
    return digests


def digests_of(library: Library) -> dict[str, str]:
    """The digest of each tool of a library."""
    return {tool.name: tool.definition.digest for tool in library}


def check_library(library: Library, told: Mapping[str, str]) -> None:
    """Refuse a library that is not what the events say.

    Raises:
        StoreFormatError: It is not; names the first tools.
    """
    held = digests_of(library)
    if held == told:
        return
    parts = [
        f"{words} {', '.join(map(repr, names[:_SHOWN]))}{' ...' * (len(names) > _SHOWN)}"
        for words, names in (
            (
                "it holds others than they say of",
                [name for name in held if told.get(name, held[name]) != held[name]],
            ),
            ("no event tells of", [name for name in held if name not in told]),
            ("it lacks", [name for name in told if name not in held]),
        )
        if names
    ]
    raise StoreFormatError(
        f"library version {library.version} is not what its signed events say: "
        f"{'; '.join(parts)}. Writers must tell of every change, as the Tool Manager and the "
        "commands of agentkit do"
    )


def check_history(
    tool_name: str,
    revisions: Sequence[ToolRevision],
    events: Iterable[LibraryEvent],
    brought: Brought,
) -> None:
    """Refuse a history of a tool that is not what the events say of it.

    Raises:
        StoreFormatError: A revision is another one, or one is missing or too much.
    """
    told: dict[int, set[str]] = {}
    for event in events:
        named = told_by(event, brought)
        if tool_name in named:
            told.setdefault(event.library_version, set()).add(named[tool_name])
    for version, digests in told.items():
        earlier = [one.definition for one in revisions if one.version <= version]
        held = earlier[-1].digest if earlier and earlier[-1] is not None else ""
        if digests != {held}:
            _not_told(tool_name, version)
    for revision in revisions:
        if revision.version not in told:
            _not_told(tool_name, revision.version)


def check_change(
    applied: AppliedChange, before: Mapping[str, str], told: Iterable[Mapping[str, str]]
) -> None:
    """Refuse a change that is not what the events of its version say.

    Args:
        applied: The change.
        before: The digest of each tool that the library held before.
        told: What each event of its version tells.

    Raises:
        StoreFormatError: It does something else.
    """
    change = applied.change
    done = dict.fromkeys(change.removals, "") | {one.name: one.digest for one in change.upserts}
    said: dict[str, str] = {}
    for one in told:
        said |= one
    for name in done.keys() | said.keys():
        if said.get(name) != done.get(name, before.get(name, "")):
            _not_told(name, applied.version)


def _not_told(tool_name: str, version: int) -> NoReturn:
    raise StoreFormatError(
        f"what the server says that library version {version} did to {tool_name!r} is not what "
        "the signed events say"
    )


def check_not_back(seen: Head, head: Head) -> None:
    """Refuse a head that is older than one that was seen, or of another history.

    Raises:
        StoreFormatError: The server went back.
    """
    is_older = head.version < seen.version or head.events.sequence < seen.events.sequence
    has_other_tools = head.version == seen.version and (head.digest, head.tools) != (
        seen.digest,
        seen.tools,
    )
    has_other_events = head.events.sequence == seen.events.sequence and head.events != seen.events
    lacks_versions = bool(seen.version) and not _covers(head.versions, seen.versions)
    if is_older or has_other_tools or has_other_events or lacks_versions:
        raise went_back(seen, head)


def went_back(seen: Head, head: Head) -> StoreFormatError:
    """The error for a server whose history is no longer the one that was seen."""
    if (head.version, head.events.sequence) < (seen.version, seen.events.sequence):
        what = "went back"
    else:
        what = "has another history than the one that was seen before"
    return StoreFormatError(
        f"the server {what}: it is at library version {head.version} and event "
        f"{head.events.sequence}, and was seen at {seen.version} and {seen.events.sequence}. "
        "Somebody plays an old state, or the store behind it was restored or is another one. If "
        "that is right, empty this library's cache (?cache=, or its folder in the libraries of "
        "$AGENTKIT_CACHE) and start again"
    )


def _covers(rows: Ranges, seen: Ranges) -> bool:
    """Whether all versions that were seen are still there."""
    return all(any(a <= first and last <= b for a, b in rows) for first, last in seen)
