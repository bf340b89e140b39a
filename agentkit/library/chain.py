"""Making events into a chain: each holds the hash of the one before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentkit.library.events import Author, EventKind, LibraryEvent
from agentkit.messages import JsonObject


class Signer(Protocol):
    """Shows that an event was written by somebody who has a key."""

    def sign(self, event_hash: str) -> str:
        """The signature of an event's hash, such as ``hmac-sha256:...``."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EventDraft:
    """An event that has no place in the chain yet; the attributes are those of ``LibraryEvent``."""

    kind: EventKind
    author: Author
    reason: str = ""
    proposal_id: str = ""
    tool_name: str = ""
    library_version: int = 0
    evidence: tuple[str, ...] = ()
    digest_before: str = ""
    digest_after: str = ""
    facts: JsonObject = field(default_factory=dict)


def chained(
    head: LibraryEvent | None,
    drafts: Iterable[EventDraft],
    *,
    at: str,
    signer: Signer | None = None,
) -> tuple[LibraryEvent, ...]:
    """Give drafts their places behind the last event of a store.

    Args:
        head: The last event that the store holds; None for an empty chain.
        drafts: What happened, in order.
        at: When, as ISO 8601 in UTC.
        signer: Signs each event.
    """
    last, events = head, []
    for draft in drafts:
        last = _event(draft, last, at=at, signer=signer)
        events.append(last)
    return tuple(events)


def _event(
    draft: EventDraft, before: LibraryEvent | None, *, at: str, signer: Signer | None
) -> LibraryEvent:
    event = LibraryEvent(
        sequence=1 if before is None else before.sequence + 1,
        previous="" if before is None else before.hash,
        at=at,
        **{name: getattr(draft, name) for name in EventDraft.__dataclass_fields__},
    )
    return event if signer is None else replace(event, signature=signer.sign(event.hash))
