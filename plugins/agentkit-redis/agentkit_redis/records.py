"""The keys of a library in Redis, and how its records are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from agentkit.errors import StoreFormatError
from agentkit.library.changes import now
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import Origin, ToolDefinition

FORMAT = "agentkit-redis 1"
"""Marks a library as ours; the number rises when an older agentkit-redis could not read it."""

FORMAT_NAME, _, FORMAT_NUMBER = FORMAT.partition(" ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """Names of keys. All share their hash tag, so that a cluster keeps them in one slot.

    Attributes:
        head: Hash: format, newest version and its stamp, last event and its hash.
        volume: Hash: number of the last episode, and how many there are, with their bytes.
        versions: Hash by version: its stamp, a space, and what was asked for as JSON. A stamp is
            the SHA-1 over the one before and that JSON, so that two libraries which part ways
            can be told apart.
        proposals: Hash by proposal id: the version that it made.
        definitions: Hash by digest: the definition as JSON.
        tools: Hash by name: the tool of the newest version, as the version and the place where
            it was added, its digest and its origin as JSON, with spaces between.
        revisions: Sorted set of scores 0: name, NUL and version in 16 digits.
        events: Stream by sequence: hash and JSON of each event. It is never trimmed.
        episodes: Stream by number: id, JSON and terms of each episode.
        ids: Hash by episode id: its number.
        index: Sorted set of scores 0: a term, NUL and the number in 16 digits. A term is a letter
            for session, tool or stop reason, and its name.
        ages: Sorted set of the numbers in 16 digits: when each episode began, in seconds.
        channel: Where a commit is told; no key.
    """

    head: str
    volume: str
    versions: str
    proposals: str
    definitions: str
    tools: str
    revisions: str
    events: str
    episodes: str
    ids: str
    index: str
    ages: str
    channel: str

    @classmethod
    def under(cls, prefix: str) -> Self:
        """The keys of the library under a prefix.

        Example:
            >>> Keys.under("team-a").head
            '{team-a}:head'
        """
        return cls(**{one.name: f"{{{prefix}}}:{one.name}" for one in fields(cls)})

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, the head first and the volume second."""
        names = [one.name for one in fields(self) if one.name != "channel"]
        return tuple(getattr(self, name) for name in names)

    @property
    def of_episodes(self) -> tuple[str, ...]:
        """What the scripts about episodes work on, in their order."""
        return (self.head, self.episodes, self.ids, self.index, self.ages, self.volume)


def raw(text: str) -> bytes:
    """Text as Redis holds it, halves of surrogate pairs included: it takes any bytes."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The inverse of ``raw``."""
    return data.decode("utf-8", "surrogatepass")


HEAD_FIELDS = ("format", "version", "stamp", "event", "hash")


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """Where a library stands.

    Attributes:
        version: The newest one.
        stamp: Of that version.
        event: Sequence of the last event.
        hash: Of the last event.
    """

    version: int
    stamp: bytes
    event: int
    hash: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A definition as the keys hold it.

    Attributes:
        name: Of the tool.
        digest: Of the definition.
        origin: Where this revision came from, as JSON.
    """

    name: str
    digest: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRecord:
    """What made a version.

    Attributes:
        version: Its number.
        stamp: Tells it from the version of that number in a library that went another way.
        data: What its key holds.
        upserts: The tools that it added or replaced, in order.
        removals: The names that it removed.
        proposal_id: The change.
        author: Who made it.
        reason: Why.
        evidence: Ids of the episodes behind it.
        created_at: When.
    """

    version: int
    stamp: bytes
    data: bytes
    upserts: tuple[Stored, ...]
    removals: tuple[str, ...]
    proposal_id: str
    author: str
    reason: str
    evidence: tuple[str, ...]
    created_at: str


def version_text(change: LibraryChange, upserts: Sequence[Stored]) -> str:
    """What a version's key holds behind the stamp. Plain ASCII, whatever a model wrote."""
    record = {
        "proposal_id": change.proposal_id,
        "author": change.author,
        "reason": change.reason,
        "evidence": list(change.evidence),
        "created_at": change.created_at or now(),
        "upserts": [[one.name, one.digest, one.origin] for one in upserts],
        "removals": list(change.removals),
    }
    return json.dumps(record, separators=(",", ":"))


def read_version(version: int, data: bytes | None) -> VersionRecord:
    """The inverse of ``version_text``, with the stamp before it.

    Raises:
        StoreFormatError: It is absent or can not be read.
    """
    try:
        stamp, _, text = (data or b"").partition(b" ")
        found: dict[str, Any] = json.loads(text)
        steps = [Stored(name=n, digest=d, origin=o) for n, d, o in found.pop("upserts")]
        removals, evidence = tuple(found.pop("removals")), tuple(found.pop("evidence"))
        return VersionRecord(
            version=version,
            stamp=stamp,
            data=data or b"",
            upserts=tuple(steps),
            removals=removals,
            evidence=evidence,
            **found,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreFormatError(
            f"what made version {version} is absent or can not be read ({error}); somebody changed "
            "the keys by hand: restore a backup"
        ) from error


def follows(stamp: bytes, data: bytes | None) -> bool:
    """Whether what made a version was written behind the version of that stamp."""
    own, _, text = (data or b"").partition(b" ")
    return own == hashlib.sha1(stamp + text, usedforsecurity=False).hexdigest().encode()


def definition_text(tool: ToolDefinition) -> tuple[Stored, str]:
    """A definition as the keys hold it, and its text without the origin."""
    record = tool.to_json()
    origin = json.dumps(record.pop("origin", {}), separators=(",", ":"))
    body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return Stored(name=tool.name, digest=tool.digest, origin=origin), body


def is_same(stored: Stored, known: ToolDefinition) -> bool:
    """Whether a definition that is known is the stored one, down to where it came from."""
    if known.digest != stored.digest:
        return False
    try:
        return known.origin == Origin(**json.loads(stored.origin))
    except (ValueError, TypeError):
        return False  # reading it tells what is wrong


def read_tool(name: bytes, data: bytes) -> tuple[int, int, Stored]:
    """Version and place where a tool of the newest version was added, and the tool.

    Raises:
        StoreFormatError: It can not be read.
    """
    try:
        since, place, digest, origin = text_of(data).split(" ", 3)
        return int(since), int(place), Stored(name=text_of(name), digest=digest, origin=origin)
    except ValueError as error:
        raise StoreFormatError(
            f"the tool {text_of(name)!r} can not be read ({error}); restore a backup"
        ) from error
