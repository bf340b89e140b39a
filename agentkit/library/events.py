"""Events: what was done to a library, by whom and why, in a chain that shows tampering.

Every step of a proposal and every other write is an event. Events are only ever appended. Each
holds the hash of the one before it, so that one that was changed, dropped or moved is found out;
a signature shows that nobody without the key made the chain anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from agentkit.errors import StoreFormatError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest

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
    "proposer_quarantined",  # nothing more is taken from this proposer
    "proposer_released",
]

AuthorKind = Literal["person", "model", "program"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Author:
    """Who did something.

    Attributes:
        kind: A person, a language model, or a program that needs neither.
        name: Of the person, the model or the program.
        prompt_hash: SHA-256 of the prompt file that a model was asked with; empty for others.
    """

    kind: AuthorKind
    name: str
    prompt_hash: str = ""

    def to_json(self) -> dict[str, str]:
        """The author as a JSON object; no hash where there is none."""
        record = {"kind": self.kind, "name": self.name}
        return record | ({"prompt_hash": self.prompt_hash} if self.prompt_hash else {})


@dataclass(frozen=True, kw_only=True)
class LibraryEvent:
    """One entry of the chain.

    Attributes:
        sequence: Its place; the first is 1.
        kind: What happened.
        at: ISO 8601 time in UTC.
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
        previous: Hash of the event before; empty for the first.
        signature: Of the hash, as ``hmac-sha256:...`` or ``ed25519:...``; empty for none.
    """

    sequence: int
    kind: EventKind
    at: str
    author: Author
    reason: str = ""
    proposal_id: str = ""
    tool_name: str = ""
    library_version: int = 0
    evidence: tuple[str, ...] = ()
    digest_before: str = ""
    digest_after: str = ""
    facts: JsonObject = field(default_factory=dict)
    previous: str = ""
    signature: str = ""

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON of everything but the signature.

        Canonical JSON (RFC 8785) can not carry integers beyond ±(2**53 - 1). Among the facts such
        a one counts as its digits with an ``n`` behind, so that it is equal to that text.
        """
        record = self.to_json()
        record.pop("signature", None)
        return digest(record)

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "author"
        }
        record["evidence"] = list(self.evidence)
        record["facts"] = dict(self.facts)
        record["author"] = self.author.to_json()
        kept = {name: value for name, value in record.items() if value not in ("", [], {})}
        return {"format": FORMAT_VERSION, **kept}

    @classmethod
    def from_json(cls, record: JsonObject) -> LibraryEvent:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no event, or its format is newer than ours.
        """
        try:
            _check_format(record)
            found = {name: record[name] for name in record if name != "format"}
            author = Author(**found.pop("author"))
            event = cls(author=author, evidence=tuple(found.pop("evidence", ())), **found)
            check_types(event)
        except (KeyError, TypeError) as error:
            raise StoreFormatError(f"not a library event ({error}): {str(record)[:200]}") from error
        return event


def _check_format(record: JsonObject) -> None:
    form = record.get("format", FORMAT_VERSION)
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
        raise TypeError("its facts are no object")
