"""Making events into a chain: each holds the hash of the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from agentkit.errors import StoreError, UsageError
from agentkit.library.events import Author, EventKind, LibraryEvent
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition


class Signer(Protocol):
    """Shows that an event was written by somebody who has a key.

    ``agentkit.library.signing`` has two, and reads their keys.
    """

    def sign(self, event_hash: str) -> str:
        """The signature of an event's hash, such as ``hmac-sha256:...``."""
        ...


class Verifier(Protocol):
    """Tells whether a signature was made with a key."""

    def verify(self, event_hash: str, signature: str) -> bool:
        """Whether ``signature`` is that of an event with this hash."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainHead:
    """Where a chain ended when somebody looked, to be remembered outside of the store.

    Attributes:
        sequence: Of the last event; 0 for an empty chain.
        hash: Of the last event; empty for an empty chain.

    Example:
        >>> print(ChainHead.parse("0:"))
        0:
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def of(cls, last: LibraryEvent | None) -> ChainHead:
        """The head of a chain that ends with this event."""
        if last is None:
            return cls(sequence=0, hash="")
        return cls(sequence=last.sequence, hash=last.hash)

    @classmethod
    def parse(cls, text: str) -> ChainHead:
        """The inverse of ``str``.

        Raises:
            UsageError: The text is not ``SEQUENCE:HASH``.
        """
        sequence, _, hash_ = text.strip().partition(":")
        fits = len(hash_) == (64 if sequence.strip("0") else 0)
        if not (sequence.isascii() and sequence.isdigit() and fits):
            raise UsageError(
                f"{text!r} is not the head of a chain; 'agentkit log --head' prints one as "
                "SEQUENCE:HASH, with 64 hexadecimal digits"
            )
        return cls(sequence=int(sequence), hash=hash_)


def chained(
    head: LibraryEvent | None,
    drafts: Iterable[EventDraft],
    *,
    at: str,
    signer: Signer | None = None,
) -> tuple[LibraryEvent, ...]:
    r"""Give drafts their places behind the last event of a store.

    Halves of surrogate pairs, which a model may write and no file can hold, become ``\udXXX``, so
    that whatever a proposer answered can be kept. The facts are copied.

    Args:
        head: The last event that the store holds; None for an empty chain.
        drafts: What happened, in order.
        at: When, as ISO 8601 in UTC.
        signer: Signs each event.

    Raises:
        UsageError: The time is not in UTC.
        StoreError: Facts of a draft hold what JSON can not.

    Example:
        >>> drafts = [
        ...     EventDraft(kind="pinned", author=Author(kind="person", name="Ada")),
        ...     EventDraft(kind="unpinned", author=Author(kind="person", name="Ada")),
        ... ]
        >>> first, second = chained(None, drafts, at="2026-11-21T10:00:00+00:00")
        >>> second.sequence, second.previous == first.hash
        (2, True)
    """
    _check_time(at)
    last, events = head, []
    for draft in drafts:
        last = _event(draft, last, at=at)
        if signer is not None:
            last = replace(last, signature=signer.sign(last.hash))
        events.append(last)
    return tuple(events)


def _event(draft: EventDraft, before: LibraryEvent | None, *, at: str) -> LibraryEvent:
    place = 1 if before is None else before.sequence + 1
    parts = {name: getattr(draft, name) for name in EventDraft.__dataclass_fields__}
    try:
        parts = {name: _storable(part) for name, part in parts.items()}
        author = replace(draft.author, name=_storable(draft.author.name))
        parts |= {"author": author, "evidence": tuple(parts["evidence"])}
        end = "" if before is None else before.hash
        event = LibraryEvent(sequence=place, at=at, previous=end, **parts)
        event.hash  # noqa: B018 - it is kept, and what is no JSON is found here
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            f"the event {draft.kind!r} about {draft.tool_name or draft.proposal_id!r} can not be "
            f"kept: {error}. Events hold JSON data only"
        ) from error
    return event


def _storable(value: Any) -> Any:
    """A copy of JSON data without halves of surrogate pairs and tuples."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_storable, value))
    return value


def _check_time(at: str) -> None:
    try:
        offset = datetime.fromisoformat(at).utcoffset()
    except ValueError:
        offset = None
    if offset != timedelta(0):
        raise UsageError(f"the time of an event is ISO 8601 in UTC (...+00:00); got {at!r}")


Operation = Literal[
    "register",
    "bind",
    "record",
    "learn",
    "insert",
    "import",
    "mend",
    "repin",
    "rollback",
    "undo",
    "edit",
]
"""What kind of change it is; ``bind`` is a contract that changed in code."""

_ABOUT_ONE: frozenset[Operation] = frozenset({"insert", "rollback"})
"""Operations that are about one tool; what else they write are new pins above it."""

_MOST_TOOLS = 1_000  # that one event lists with their digests
_LONGEST = 2_000  # characters of a reason


def written(
    operation: Operation,
    change_id: str,
    definitions: Sequence[ToolDefinition],
    *,
    before: Library,
    author: Author,
    reason: str = "",
    evidence: tuple[str, ...] = (),
    replaced: Sequence[str] = (),
) -> EventDraft:
    """The event of a change.

    Args:
        operation: What kind of change it is.
        change_id: Identifies the change in the store.
        definitions: What is written, children before parents; the first is what it is about.
        before: The library before.
        author: Who writes.
        reason: Why; an event keeps its first 2,000 characters.
        evidence: Ids of the episodes behind it.
        replaced: Names of tools that get other words than any proposal gave them.
    """
    facts: dict[str, Any] = {"operation": operation, "change": change_id}
    if replaced:
        facts["replaced"] = list(replaced)
    draft = EventDraft(
        kind="written",
        author=author,
        reason=cut(reason),
        library_version=before.version + 1,
        evidence=evidence,
        facts=facts,
    )
    if len(definitions) == 1 or (definitions and operation in _ABOUT_ONE):
        return _of_one(draft, definitions, before)
    return replace(draft, facts=facts | _of_many(definitions)) if definitions else draft


def cut(text: str) -> str:
    """Text as an event keeps it: of bounded length, and without halves of surrogate pairs."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
    return short.encode("utf-8", "replace").decode()


def _of_one(
    draft: EventDraft, definitions: Sequence[ToolDefinition], library: Library
) -> EventDraft:
    """A change of one tool, with composites above it that got new pins."""
    changed, *above = definitions
    before = library.get(changed.name)
    facts = dict(draft.facts)
    if above:
        facts["repinned"] = {definition.name: definition.digest for definition in above}
    return replace(
        draft,
        tool_name=changed.name,
        digest_before="" if before is None else before.definition.digest,
        digest_after=changed.digest,
        facts=facts,
    )


def _of_many(definitions: Sequence[ToolDefinition]) -> dict[str, Any]:
    """A change of several tools: each with its digest, or of very many the digest of all."""
    digests = {definition.name: definition.digest for definition in definitions}
    if len(digests) <= _MOST_TOOLS:
        return {"tools": digests}
    return {"count": len(digests), "digest": digest(digests)}
