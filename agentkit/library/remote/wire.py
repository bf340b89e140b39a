"""The wire format of a library over HTTP, version 1: what server and client both stand on.

``docs/stores.md`` tells it in words. The head is a small JSON object that says what is
newest. Everything else is lines of JSON (``application/x-ndjson``) about what never changes again,
in pages; the last line of a page says where the next one begins, so that a page that was cut off
is seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

from agentkit.errors import AgentKitError, StoreFormatError
from agentkit.library.events import ChainHead
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.messages import JsonObject
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

FORMAT_VERSION = 1
"""Version of the wire format; it also stands in the paths."""

ROOT = f"/library/v{FORMAT_VERSION}"
HEAD_PATH = f"{ROOT}/head"
TOOLS_PATH = f"{ROOT}/tools"
CHANGES_PATH = f"{ROOT}/changes"
EVENTS_PATH = f"{ROOT}/events"
HISTORY_PATH = f"{ROOT}/history"

JSON = "application/json"
LINES = "application/x-ndjson"

LONGEST_WAIT_SECONDS = 25.0
"""How long a server lets a client wait for news, below the time at which proxies hang up."""

_MOST_VERSIONS = 10_000_000

Ranges = tuple[tuple[int, int], ...]
"""Versions as first and last of those in a row, ascending."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What is newest in a library.

    Attributes:
        version: The newest library version; 0 for none.
        digest: Of the library at that version.
        tools: How many tools it has.
        versions: All versions that there are.
        events: Where the chain of events ends.
    """

    version: int
    digest: str
    tools: int
    versions: Ranges
    events: ChainHead

    def to_json(self) -> dict[str, Any]:
        """The head as a JSON object."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "library": {"digest": self.digest, "tools": self.tools},
            "versions": [list(row) for row in self.versions],
            "events": {"sequence": self.events.sequence, "hash": self.events.hash},
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Head:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no head, or its format is newer than ours.
        """
        try:
            _check_format(record["format"])
            library, events = record["library"], record["events"]
            rows = tuple((_number(a), _number(b)) for a, b in record["versions"])
            _check_rows(rows)
            head = cls(
                version=_number(record["version"]),
                digest=_text(library["digest"]),
                tools=_number(library["tools"]),
                versions=rows,
                events=ChainHead(sequence=_number(events["sequence"]), hash=_text(events["hash"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(
                f"not the head of a library ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error
        return head

    def has(self, version: int) -> bool:
        """Whether the library has such a version; 0, the empty one, is before the first."""
        if version == 0:
            return not self.versions or self.versions[0][0] == 1
        return any(first <= version <= last for first, last in self.versions)

    @property
    def all_versions(self) -> Sequence[int]:
        """All versions, ascending."""
        match self.versions:
            case ((first, last),):
                return range(first, last + 1)
            case rows:
                return tuple(one for first, last in rows for one in range(first, last + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeOutline:
    """A change without its definitions.

    Attributes:
        version: The version that it made.
        change: Who made it, why, and what it removes; its upserts are empty.
        upserts: Name and digest of each definition that it brings, in order.
    """

    version: int
    change: LibraryChange
    upserts: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """The outline as a JSON object; empty parts are left out."""
        change = self.change
        record: dict[str, Any] = {
            "version": self.version,
            "proposal_id": change.proposal_id,
            "author": change.author,
            "reason": change.reason,
            "evidence": list(change.evidence),
            "created_at": change.created_at,
            "removals": list(change.removals),
            "upserts": [list(pair) for pair in self.upserts],
        }
        return {name: value for name, value in record.items() if value not in ("", [])}

    @classmethod
    def from_json(cls, record: JsonObject) -> ChangeOutline:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no outline of a change.
        """
        try:
            return cls(
                version=_number(record["version"]),
                change=LibraryChange(
                    proposal_id=_text(record["proposal_id"]),
                    author=_text(record.get("author", "")),
                    reason=_text(record.get("reason", "")),
                    evidence=tuple(map(_text, record.get("evidence", ()))),
                    created_at=_text(record.get("created_at", "")),
                    removals=tuple(map(_text, record.get("removals", ()))),
                ),
                upserts=tuple((_text(a), _text(b)) for a, b in record.get("upserts", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            _no_line("change", record, error)


def definition_to_json(definition: ToolDefinition) -> dict[str, Any]:
    """A definition with its digest, as one line."""
    return {"digest": definition.digest, "definition": definition.to_json()}


def definition_from_json(record: JsonObject) -> ToolDefinition:
    """The inverse of ``definition_to_json``; the digest is worked out anew.

    Raises:
        StoreFormatError: The line is no definition, or not the one that its digest says.
    """
    try:
        expected = _text(record["digest"])
        definition = ToolDefinition.from_json(record["definition"])
        found = definition.digest
    except (AgentKitError, KeyError, TypeError, ValueError, RecursionError) as error:
        _no_line("definition", record, error)
    if found != expected:
        raise StoreFormatError(
            f"the definition of {definition.name!r} has digest {found[:12]} and should have "
            f"{expected[:12]}: it was changed on the way, or in the store behind the server"
        )
    return definition


def revision_to_json(revision: ToolRevision) -> dict[str, Any]:
    """A revision of a tool, as one line."""
    record: dict[str, Any] = {
        "version": revision.version,
        "proposal_id": revision.proposal_id,
        "author": revision.author,
        "reason": revision.reason,
        "evidence": list(revision.evidence),
        "created_at": revision.created_at,
    }
    known = revision.definition
    return record | ({} if known is None else definition_to_json(known))


def revision_from_json(record: JsonObject) -> ToolRevision:
    """The inverse of ``revision_to_json``.

    Raises:
        StoreFormatError: The line is no revision, or its definition not what its digest says.
    """
    definition = definition_from_json(record) if "definition" in record else None
    try:
        return ToolRevision(
            version=_number(record["version"]),
            definition=definition,
            proposal_id=_text(record["proposal_id"]),
            author=_text(record["author"]),
            reason=_text(record["reason"]),
            evidence=tuple(map(_text, record["evidence"])),
            created_at=_text(record["created_at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        _no_line("revision", record, error)


def ranges(versions: Iterable[int]) -> Ranges:
    """Ascending numbers as rows.

    Example:
        >>> ranges([1, 2, 3, 7])
        ((1, 3), (7, 7))
    """
    rows: list[tuple[int, int]] = []
    for version in versions:
        if rows and version == rows[-1][1] + 1:
            rows[-1] = (rows[-1][0], version)
        else:
            rows.append((version, version))
    return tuple(rows)


def encode(record: Mapping[str, Any]) -> bytes:
    """A JSON object in one line of ASCII, which carries halves of surrogate pairs too."""
    return json.dumps(record, separators=(",", ":"), check_circular=False).encode()


def decode(line: bytes) -> JsonObject:
    """The inverse of ``encode``.

    Raises:
        StoreFormatError: The line is no JSON object.
    """
    try:
        record = read_json(line.decode(), decode=_DECODER.decode)
    except ValueError as error:
        raise StoreFormatError(f"not JSON ({error}): {line[:100]!r}") from error
    if not isinstance(record, dict):
        raise StoreFormatError(f"not a JSON object: {line[:100]!r}")
    return record


def _check_format(form: object) -> None:
    if type(form) is not int or form < 1:
        raise TypeError(f"its format is {form!r}")
    if form > FORMAT_VERSION:
        raise StoreFormatError(
            f"the server speaks version {form} of the wire format, this agentkit reads up to "
            f"{FORMAT_VERSION}; upgrade agentkit-evolve"
        )


def _check_rows(rows: Ranges) -> None:
    """Refuse versions that are in no order, or so many that nobody could have made them."""
    numbers = [one for row in rows for one in row]
    if numbers != sorted(numbers) or any(a[1] >= b[0] for a, b in pairwise(rows)):
        raise ValueError("its versions are in no order")
    if sum(last - first + 1 for first, last in rows) > _MOST_VERSIONS:
        raise ValueError(f"it has more than {_MOST_VERSIONS:,} versions")


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.50} is no number of the kind that belongs there")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is no text")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _no_line(what: str, record: JsonObject, error: Exception) -> NoReturn:
    raise StoreFormatError(
        f"not a {what} ({type(error).__name__}: {error}): {str(record)[:200]}"
    ) from error
