"""Events: what was done to a library, by whom and why, in a chain that shows tampering.

Every step of a proposal and every other write is an event. Events are only ever appended. Each
holds the hash of the one before it, so that one that was changed, dropped or moved is found out;
a signature shows that nobody without the key rebuilt the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.messages import JsonObject
from agentkit.records import Record
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentkit.library.library import Library

FORMAT_VERSION = 1
"""Version of the JSON form of an event."""

EventKind = Literal[
    # a proposal came into this state
    "proposed",
    "validated",
    "shadow",
    "canary",
    "active",
    "superseded",
    "rejected",
    "quarantined",
    "rolled_back",
    # something about a proposal, whose state stays
    "judged",  # a judge of another model gave its opinion
    "approved",  # a person agreed
    "overruled",  # a person said that checks were wrong about its words
    "assessed",  # a gate looked at the numbers
    "rebased",  # its candidate was moved to a newer revision of its tool
    # something about a tool, a proposer or the library
    "written",  # a change outside of proposals: register, record, learn, insert, import
    "marked",  # a composite waits for re-validation, because a child changed
    "revalidated",  # it was looked at again
    "pinned",  # the kill switch: runs use this version whatever happens
    "unpinned",
    "vectors_promoted",  # retrieval reads these word vectors, which learned the catalogue
    "vectors_taken_back",
    "proposer_quarantined",  # nothing more is taken from this proposer
    "proposer_released",
]

AuthorKind = Literal["person", "model", "program"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Author(Record):
    """The author of an action.

    Attributes:
        kind: A person, a language model, or a program that needs neither.
        name: Name of the person, model or program.
        prompt_hash: SHA-256 of the prompt file that a model was asked with; empty for others.
    """

    _OPTIONAL: ClassVar = ("prompt_hash",)

    kind: AuthorKind
    name: str
    prompt_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class EventDraft:
    """The content of an event before it has a place in the chain.

    Attributes:
        kind: What happened.
        author: Who did it.
        reason: Why, in words.
        proposal_id: The proposal that it is about; empty for none.
        tool_name: The tool that it is about; empty for none.
        library_version: The newest library version once it had happened.
        evidence: Ids of the episodes behind it.
        digest_before: Digest of the tool's definition before; empty where nothing changed.
        digest_after: Digest of the definition afterwards.
        facts: What else is to be kept, by kind: the proposal itself, failed checks, numbers of a
            gate.
    """

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


@dataclass(frozen=True, kw_only=True)
class LibraryEvent(EventDraft):
    """One entry of the chain; further attributes are those of ``EventDraft``.

    Attributes:
        sequence: Its place; the first is 1.
        at: ISO 8601 time in UTC.
        previous: Hash of the event before; empty for the first.
        signature: Signature of the hash, as ``hmac-sha256:...`` or ``ed25519:...``; empty for none.
    """

    sequence: int
    at: str
    previous: str = ""
    signature: str = ""

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON of everything but the signature.

        Canonical JSON (RFC 8785) cannot carry integers beyond ±(2**53 - 1). Among the facts such
        a one counts as its digits with an ``n`` behind, so that it is equal to that text.
        """
        record = self.to_json()
        record.pop("signature", None)
        return digest(record)

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {"format": FORMAT_VERSION, "sequence": self.sequence}
        record |= {name: getattr(self, name) for name in self.__dataclass_fields__}
        record["evidence"] = list(self.evidence)
        record["facts"] = dict(self.facts)
        record["author"] = self.author.to_json()
        return {name: value for name, value in record.items() if value not in ("", [], {})}

    @classmethod
    def from_json(cls, record: JsonObject) -> LibraryEvent:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is not an event, or its format is newer than ours.
        """
        try:
            found = dict(record)
            _check_format(found.pop("format", FORMAT_VERSION), record)
            author = Author(**found.pop("author"))
            event = cls(author=author, evidence=tuple(found.pop("evidence", ())), **found)
            check_types(event)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(f"not a library event ({error}): {str(record)[:200]}") from error
        return event


def _check_format(form: object, record: JsonObject) -> None:
    if type(form) is not int or form < 1:
        raise TypeError(f"its format is {form!r}")
    if form > FORMAT_VERSION:
        raise StoreFormatError(
            f"event {record.get('sequence')} has format {form}, this agentkit reads up to "
            f"{FORMAT_VERSION}; upgrade agentkit-evolve"
        )


_NUMBERS = ("sequence", "library_version")
_TEXTS = ("kind", "at", "reason", "proposal_id", "tool_name", "digest_before", "digest_after")


def check_types(event: LibraryEvent) -> None:
    """Refuse what hashes like an event and could not be read as one, such as ``1.0`` for 1.

    Raises:
        TypeError: A part is of the wrong type.
    """
    author = (event.author.kind, event.author.name, event.author.prompt_hash)
    own = (getattr(event, name) for name in (*_TEXTS, "previous", "signature"))
    if not all(isinstance(text, str) for text in (*own, *author, *event.evidence)):
        raise TypeError("what should be text is not")
    if not all(type(getattr(event, name)) is int for name in _NUMBERS):
        raise TypeError("what should be a whole number is not")
    if not isinstance(event.facts, Mapping):
        raise TypeError("its facts are not an object")


class Signer(Protocol):
    """Shows that an event was written by somebody who has a key.

    ``agentkit.library.chain`` has two, and reads their keys.
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
class ChainHead:
    """Where a chain ended when somebody looked, to be remembered outside of the store.

    Attributes:
        sequence: Sequence of the last event; 0 for an empty chain.
        hash: Hash of the last event; empty for an empty chain.

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
        StoreError: Facts of a draft hold what JSON cannot.

    Example:
        >>> drafts = [
        ...     EventDraft(kind="pinned", author=Author(kind="person", name="Ada")),
        ...     EventDraft(kind="unpinned", author=Author(kind="person", name="Ada")),
        ... ]
        >>> first, second = chained(None, drafts, at="2026-11-21T10:00:00+00:00")
        >>> second.sequence, second.previous == first.hash
        (2, True)
    """
    moment = moment_of(at)
    if moment is None or moment.utcoffset() != timedelta(0):
        raise UsageError(f"the time of an event is ISO 8601 in UTC (...+00:00); got {at!r}")
    last, events = head, []
    for draft in drafts:
        last = _event(draft, last, at=at)
        if signer is not None:
            last = replace(last, signature=signer.sign(last.hash))
        events.append(last)
    return tuple(events)


def _event(draft: EventDraft, before: LibraryEvent | None, *, at: str) -> LibraryEvent:
    try:
        parts = {name: _storable(getattr(draft, name)) for name in EventDraft.__dataclass_fields__}
        parts["author"] = replace(draft.author, name=storable(draft.author.name))
        parts["evidence"] = tuple(parts["evidence"])
        head = ChainHead.of(before)
        event = LibraryEvent(sequence=head.sequence + 1, at=at, previous=head.hash, **parts)
        event.hash  # noqa: B018 - it is kept, and what is no JSON is found here
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            f"the event {draft.kind!r} about {draft.tool_name or draft.proposal_id!r} cannot be "
            f"kept: {error}. Events hold JSON data only"
        ) from error
    return event


def storable(text: str) -> str:
    r"""Text that every store takes: half a surrogate pair becomes ``\udXXX``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _storable(value: Any) -> Any:
    """A copy of JSON data without halves of surrogate pairs and tuples."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_storable, value))
    return value


def moment_of(text: str) -> datetime | None:
    """The time that a text says, as ISO 8601 with a time zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


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
    digests = {one.name: one.digest for one in definitions}
    draft = EventDraft(
        kind="written",
        author=author,
        reason=cut(reason),
        library_version=before.version + 1,
        evidence=evidence,
        facts=facts,
    )
    if len(definitions) == 1 or (definitions and operation in _ABOUT_ONE):
        name = definitions[0].name
        held, changed = before.get(name), digests.pop(name)
        if digests:  # composites above it that got new pins
            facts["repinned"] = digests
        return replace(
            draft,
            tool_name=name,
            digest_before="" if held is None else held.definition.digest,
            digest_after=changed,
        )
    if len(digests) > _MOST_TOOLS:
        facts |= {"count": len(digests), "digest": digest(digests)}
    elif digests:
        facts["tools"] = digests
    return draft


def cut(text: str) -> str:
    """Text as an event keeps it: of bounded length, and without halves of surrogate pairs."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
    return short.encode("utf-8", "replace").decode()
