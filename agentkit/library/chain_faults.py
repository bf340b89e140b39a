"""Looking for what somebody changed in a chain of events after it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agentkit.library.chain import ChainHead, Verifier
from agentkit.library.events import LibraryEvent

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
        >>> from agentkit.library.chain import EventDraft, chained
        >>> from agentkit.library.events import Author
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
        elif event.sequence >= signed_from or event.signature:
            yield from _signature(verifier, event, hash_)
        if expected_head is not None and event.sequence == expected_head.sequence:
            seen = hash_
        before, before_hash = event, hash_
    if expected_head is not None and expected_head.sequence:
        yield from _head(before, seen, expected_head)
    if unchecked:
        yield _unchecked(unchecked, before)


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
    if before is None:
        return
    earlier, later = _moment(before), _moment(event)
    if earlier is not None and later is not None and later < earlier:
        words = f"is of {event.at}, before event {before.sequence} ({before.at}): a clock was set"
        yield _fault(event, "clock", words)


def _signature(verifier: Verifier, event: LibraryEvent, hash_: str) -> Iterator[ChainFault]:
    if not event.signature:
        yield _fault(event, "unsigned", "carries no signature")
    elif not verifier.verify(hash_, event.signature):
        words = "carries a signature that was made with another key, or for another content"
        yield _fault(event, "signature", words)


def _head(last: LibraryEvent | None, seen: str, expected: ChainHead) -> Iterator[ChainFault]:
    if seen == expected.hash:
        return
    end = "is empty" if last is None else f"ends with event {last.sequence}"
    if last is None or last.sequence < expected.sequence:
        words = (
            f"the chain {end}, but event {expected.sequence} was seen before: its end was cut off"
        )
    else:
        words = f"event {expected.sequence} is another than the one that was seen before"
    yield ChainFault(sequence=expected.sequence, code="head", message=words)


def _unchecked(count: int, last: LibraryEvent | None) -> ChainFault:
    signed = "1 event carries a signature" if count == 1 else f"{count:,} events carry signatures"
    return ChainFault(
        sequence=0 if last is None else last.sequence,
        code="unchecked",
        message=f"{signed} that nobody checked: no key was given",
    )


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
