"""What the keys of a library hold, as Python reads and writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.errors import StoreFormatError
from agentkit.library.changes import now
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import Origin, ToolDefinition
from agentkit_redis.keys import text_of

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
