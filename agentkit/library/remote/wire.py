"""The wire format of a library over HTTP, version 2: what server and client both stand on.

``docs/stores.md`` tells it in words. Every answer is lines of JSON (``application/x-ndjson``). The
first line of a library is its head, which says what is newest; definitions or changes follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from agentkit.errors import StoreFormatError
from agentkit.library.changes import change_from_json, change_to_json
from agentkit.library.events import ChainHead
from agentkit.library.store import AppliedChange
from agentkit.messages import JsonObject
from agentkit.reading import read_json

FORMAT_VERSION = 2
"""Version of the wire format; it also stands in the paths."""

ROOT = f"/library/v{FORMAT_VERSION}"
LIBRARY_PATH = f"{ROOT}/library"
CHANGES_PATH = f"{ROOT}/changes"
EVENTS_PATH = f"{ROOT}/events"

LINES = "application/x-ndjson"

MOST_CHANGES = 16
"""A client that lacks so many changes gets them, and one of a large library more."""

_MOST_VERSIONS = 10_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest state of a library.

    Attributes:
        version: The newest library version; 0 for none.
        digest: Digest of the library at that version.
        tools: How many tools it has.
        first: The oldest version that there is, and
        last: the newest one; all in between are held.
        events: Where the chain of events ends.
    """

    version: int
    digest: str
    tools: int
    first: int
    last: int
    events: ChainHead

    def to_json(self) -> dict[str, Any]:
        """The head as a JSON object."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "library": {"digest": self.digest, "tools": self.tools},
            "versions": [self.first, self.last],
            "events": {"sequence": self.events.sequence, "hash": self.events.hash},
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Head:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is not a head, or its format is newer than ours.
        """
        try:
            _check_format(record["format"])
            library, events = record["library"], record["events"]
            head = cls(
                version=_number(record["version"]),
                digest=str(library["digest"]),
                tools=_number(library["tools"]),
                first=_number(record["versions"][0]),
                last=_number(record["versions"][1]),
                events=ChainHead(sequence=_number(events["sequence"]), hash=str(events["hash"])),
            )
            if not head.first <= head.last + 1 <= _MOST_VERSIONS or head.version > head.last:
                raise ValueError(f"it has the versions {head.first} to {head.last}")  # noqa: TRY301
        except (LookupError, TypeError, ValueError) as error:
            raise StoreFormatError(
                f"not the head of a library ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error
        return head

    def has(self, version: int) -> bool:
        """Whether the library has such a version; 0, the empty one, is before the first."""
        return version in self.versions or (version == 0 and self.first <= 1)

    @property
    def versions(self) -> Sequence[int]:
        """All versions, ascending."""
        return range(self.first, self.last + 1)


def applied_to_json(applied: AppliedChange) -> dict[str, Any]:
    """A change that made a version, as one line."""
    return {"version": applied.version, **change_to_json(applied.change)}


def applied_from_json(record: JsonObject) -> AppliedChange:
    """The inverse of ``applied_to_json``; ``StoreFormatError`` for what is none."""
    version = record.get("version")
    if type(version) is not int:
        raise StoreFormatError(f"not a change (its version is {version!r:.50})")
    return AppliedChange(version=version, change=change_from_json(record))


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


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.50} is not a number of the expected kind")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
