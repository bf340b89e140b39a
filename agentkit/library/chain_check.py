"""Checking a chain of events, and a library against what its events say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agentkit.errors import StoreFormatError
from agentkit.library.changes import actual_digest
from agentkit.library.events import ChainHead, EventKind, LibraryEvent, Verifier
from agentkit.library.store import ToolRevision, ToolStore
from agentkit.tools.canonical import digest

FaultCode = Literal[
    "gap",  # events are missing
    "order",  # an event stands in a place that is not its own, or twice
    "link",  # an event is not the one that the next was chained to
    "unreadable",  # an event holds what no store could have given
    "unsigned",  # a signature was asked for and is not there
    "signature",  # a signature is not that of the event
    "head",  # the chain lacks an event that was seen before
    "definition",  # the store holds another definition than an event says
    "clock",  # a note: the time went backwards
    "unchecked",  # a note: there are signatures that nobody looked at
    "untold",  # a note: a library version that no event tells of
]

NOTES: frozenset[FaultCode] = frozenset({"clock", "unchecked", "untold"})
"""What does not say that anything was changed: clocks do go backwards, tools may be imported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFault:
    """One thing that is wrong with a chain, or worth to know.

    Attributes:
        sequence: The event that it is about.
        code: What is wrong.
        message: The same in a sentence.
    """

    sequence: int
    code: FaultCode
    message: str

    @property
    def is_note(self) -> bool:
        """Whether the chain may be whole all the same."""
        return self.code in NOTES

    def to_json(self) -> dict[str, Any]:
        """The fault as a JSON object."""
        return {"sequence": self.sequence, "code": self.code, "message": self.message}


def verify_chain(
    events: Iterable[LibraryEvent],
    *,
    verifier: Verifier | None = None,
    signed_from: int = 1,
    expected_head: ChainHead | None = None,
    before: LibraryEvent | None = None,
) -> tuple[ChainFault, ...]:
    """What is wrong with a chain: all of it, in the order of the events.

    A chain shows by itself that an event before its last was changed, dropped, moved or repeated.
    It does not show that the last event was changed or that the end was cut off: give the head
    that you remember. Nor does it show that somebody wrote the whole chain anew: give a verifier,
    whose key the store never held, or the head.

    Time and memory: one pass, one event at a time.

    Args:
        events: All events of a store, as ``EventStore.events`` gives them.
        verifier: Checks the signatures; None leaves them alone.
        signed_from: The first event that has to be signed, for a chain that began without.
        expected_head: Where the chain ended at an earlier time. It may have grown since.
        before: The event that ``events`` follow, where the chain was looked at up to it earlier.

    Returns:
        Faults and notes; see ``ChainFault.is_note``.

    Example:
        >>> from agentkit.library.events import Author, EventDraft, chained
        >>> draft = EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))
        >>> events = chained(None, [draft] * 4, at="2026-11-21T10:00:00+00:00")
        >>> verify_chain(events)
        ()
        >>> for fault in verify_chain([events[0], *events[2:]], expected_head=ChainHead.parse(
        ...     "9:" + "0" * 64
        ... )):
        ...     print(fault.code, fault.message)
        gap event 2 is missing: event 3 follows event 1
        head the chain ends with event 4, but event 9 was seen before: its end was cut off
    """
    return tuple(_faults(events, verifier, signed_from, expected_head, before))


def _faults(
    events: Iterable[LibraryEvent],
    verifier: Verifier | None,
    signed_from: int,
    expected_head: ChainHead | None,
    before: LibraryEvent | None,
) -> Iterator[ChainFault]:
    before_hash, unchecked, seen = "" if before is None else _hash(before), 0, ""
    for event in events:
        hash_ = _hash(event)
        if not hash_:
            yield _fault(event, "unreadable", "holds what JSON can not, so it has no hash")
        yield from _place(before, before_hash, event)
        yield from _time(before, event)
        if verifier is None:
            unchecked += bool(event.signature)
        elif event.signature or event.sequence >= signed_from:
            yield from _signature(verifier, event, hash_)
        if expected_head is not None and event.sequence == expected_head.sequence:
            seen = hash_
        before, before_hash = event, hash_
    last = 0 if before is None else before.sequence
    if expected_head is not None and expected_head.sequence and seen != expected_head.hash:
        yield _head(last, expected_head.sequence)
    if unchecked:
        signed = f"{unchecked:,} events carry signatures"
        if unchecked == 1:
            signed = "1 event carries a signature"
        message = f"{signed} that nobody checked: no key was given"
        yield ChainFault(sequence=last, code="unchecked", message=message)


def _place(
    before: LibraryEvent | None, before_hash: str, event: LibraryEvent
) -> Iterator[ChainFault]:
    last = 0 if before is None else before.sequence
    if event.sequence > last + 1:
        first, end = last + 1, event.sequence - 1
        lost = f"event {first} is" if first == end else f"events {first} to {end} are"
        where = f"follows event {last}" if before is not None else "is the first"
        message = f"{lost} missing: event {event.sequence} {where}"
        yield ChainFault(sequence=first, code="gap", message=message)
    elif event.sequence <= last:
        yield _fault(event, "order", f"stands behind event {last}: it was moved, or is there twice")
    elif before is None and event.previous:
        yield _fault(event, "link", "is the first and names one before it: it was changed")
    elif event.previous != before_hash:
        yield ChainFault(
            sequence=last,
            code="link",
            message=f"event {last} is not the one that event {event.sequence} was chained to: "
            "one of the two was changed after it was written",
        )


def _time(before: LibraryEvent | None, event: LibraryEvent) -> Iterator[ChainFault]:
    earlier = None if before is None else _moment(before)
    later = _moment(event)
    if before is not None and earlier and later and later < earlier:
        words = f"is of {event.at}, before event {before.sequence} ({before.at}): a clock was set"
        yield _fault(event, "clock", words)


def _signature(verifier: Verifier, event: LibraryEvent, hash_: str) -> Iterator[ChainFault]:
    if not event.signature:
        yield _fault(event, "unsigned", "carries no signature")
    elif not verifier.verify(hash_, event.signature):
        words = "carries a signature that was made with another key, or for another content"
        yield _fault(event, "signature", words)


def _head(last: int, expected: int) -> ChainFault:
    message = f"event {expected} is another than the one that was seen before"
    if last < expected:
        end = f"ends with event {last}" if last else "is empty"
        message = f"the chain {end}, but event {expected} was seen before: its end was cut off"
    return ChainFault(sequence=expected, code="head", message=message)


def _fault(event: LibraryEvent, code: FaultCode, words: str) -> ChainFault:
    return ChainFault(sequence=event.sequence, code=code, message=f"event {event.sequence} {words}")


def _hash(event: LibraryEvent) -> str:
    try:
        return event.hash
    except (ValueError, TypeError, RecursionError):
        return ""


def _moment(event: LibraryEvent) -> datetime | None:
    """The time of an event; None for one that can not be compared with others."""
    try:
        moment = datetime.fromisoformat(event.at)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


_WRITES: frozenset[EventKind] = frozenset({"written", "active", "rolled_back"})
"""Kinds of events that come with definitions, whose facts may tell of several."""


def verify_library(store: ToolStore, events: Iterable[LibraryEvent]) -> tuple[ChainFault, ...]:
    """What in a store is not as the events say, in the order of the events.

    An event says which digests tools had at its library version: its own tool in ``digest_after``;
    those of a change of several tools in the facts ``tools``, and of very many one digest over all
    of them (``count``, ``digest``); composites that got new pins in the fact ``repinned``; and in
    ``removed``, which are gone. Digests are computed anew from what the store holds, so that a
    definition that was changed behind the store's back is found. A whole chain comes first: see
    ``verify_chain``.

    Library versions that no event tells of are a note: they were written around the Tool Manager.

    Args:
        store: Where the definitions are kept.
        events: All events of the same store.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> store = open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(add, expected_version=0)
        1
        >>> [note.message for note in verify_library(store, store.events())]
        ['no event tells of library version 1']
    """
    kept = tuple(events)
    histories: dict[str, Sequence[ToolRevision]] = {}
    found: list[ChainFault] = []
    for event in kept:
        if event.library_version:
            try:
                found += _library_faults(event, store, histories)
            except StoreFormatError as error:
                words = f"tells of what the store does not read: {error}"
                found.append(_fault(event, "definition", words))
    return (*found, *_untold(kept, store.versions()))


def _library_faults(
    event: LibraryEvent, store: ToolStore, histories: dict[str, Sequence[ToolRevision]]
) -> Iterator[ChainFault]:
    """What an event says and the store does not; each history is read once."""
    version = event.library_version
    for name, stated in event_digests(event):
        if name not in histories:
            histories[name] = store.history(name)
        earlier = [one.definition for one in histories[name] if one.version <= version]
        held = earlier[-1] if earlier else None
        actual = "" if held is None else actual_digest(held)
        if actual != stated:
            yield _fault(
                event,
                "definition",
                f"says that {name!r} had {_words(stated)} at library version {version}, but the "
                f"store holds {_words(actual)}",
            )
    bulk = bulk_of(event)
    if bulk is not None:
        applied = next(iter(store.changes(after=version - 1)), None)
        is_it = applied is not None and applied.version == version
        upserts = applied.change.upserts if applied is not None and is_it else ()
        made = {one.name: actual_digest(one) for one in upserts}
        if (len(made), digest(made)) != bulk:
            yield _fault(
                event,
                "definition",
                f"says that library version {version} brought {bulk[0]:,} definitions "
                f"with a digest over all of them, but the store holds {len(made):,}, or others",
            )


def bulk_of(event: LibraryEvent) -> tuple[int, object] | None:
    """How many definitions a very large change brought, and the digest over all of theirs."""
    count = event.facts.get("count")
    if event.kind != "written" or not isinstance(count, int):
        return None
    return count, event.facts.get("digest")


def event_digests(event: LibraryEvent) -> Iterator[tuple[str, str]]:
    """The tools of which an event tells, with the digest of each; empty for one that is gone.

    Those of a very large change are not among them: see ``bulk_of``.
    """
    if event.digest_after:
        yield event.tool_name, event.digest_after
    if event.kind not in _WRITES:
        return
    for part in ("tools", "repinned"):
        digests = event.facts.get(part)
        if isinstance(digests, Mapping):
            yield from (
                (name, stated) for name, stated in digests.items() if isinstance(stated, str)
            )
    removed = event.facts.get("removed")
    if isinstance(removed, list):
        yield from ((name, "") for name in removed if isinstance(name, str))


def _words(stated: str) -> str:
    return f"the definition with digest {stated[:12]}" if stated else "none"


def _untold(events: Iterable[LibraryEvent], versions: Iterable[int]) -> Iterator[ChainFault]:
    """Notes on versions without an event; those in a row are one note."""
    stated = {
        e.library_version: e.sequence for e in events if e.digest_after or e.kind == "written"
    }
    after = 0
    rows: list[tuple[int, list[int]]] = []
    for version in versions:
        if version in stated:
            after = stated[version]
        elif rows and rows[-1][1][-1] == version - 1:
            rows[-1][1].append(version)
        else:
            rows.append((after, [version]))
    for sequence, row in rows:
        which = f"version {row[0]}" if len(row) == 1 else f"versions {row[0]} to {row[-1]}"
        message = f"no event tells of library {which}"
        yield ChainFault(sequence=sequence, code="untold", message=message)
