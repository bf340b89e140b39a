"""The wire format of a library over HTTP, version 3: what server and client both stand on.

``docs/stores.md`` tells it in words. An answer is lines of JSON (``application/x-ndjson``): the
head, which says what is newest, then the changes and the events that the client lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from agentkit.errors import StoreFormatError
from agentkit.library.changes import change_from_json
from agentkit.library.events import ChainHead, LibraryEvent
from agentkit.library.store import AppliedChange
from agentkit.messages import JsonObject
from agentkit.reading import read_json

FORMAT_VERSION = 3
"""Version of the wire format; it also stands in the path."""

PATH = f"/library/v{FORMAT_VERSION}"
LINES = "application/x-ndjson"


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest state of a library.

    Attributes:
        version: The newest library version; 0 for none.
        digest: Digest of the library at that version.
        events: Where the chain of events ends.
    """

    version: int
    digest: str
    events: ChainHead

    def to_json(self) -> dict[str, Any]:
        """The head as a JSON object."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "library": self.digest,
            "events": {"sequence": self.events.sequence, "hash": self.events.hash},
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Head:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is not a head, or its format is newer than ours.
        """
        try:
            form, events = _number(record["format"]), record["events"]
            if form > FORMAT_VERSION:
                raise StoreFormatError(
                    f"the server speaks version {form} of the wire format, this agentkit reads up "
                    f"to {FORMAT_VERSION}; upgrade agentkit-evolve"
                )
            return cls(
                version=_number(record["version"]),
                digest=str(record["library"]),
                events=ChainHead(sequence=_number(events["sequence"]), hash=str(events["hash"])),
            )
        except (LookupError, TypeError) as error:
            raise StoreFormatError(
                f"not the head of a library ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a server answers.

    Attributes:
        head: What is newest.
        changes: What made the versions behind the one that is known.
        events: The events behind the one that is known.
    """

    head: Head
    changes: tuple[AppliedChange, ...]
    events: tuple[LibraryEvent, ...]

    @classmethod
    def of(cls, records: Iterable[JsonObject]) -> Answer:
        """The answer of these records.

        Raises:
            StoreFormatError: They are no answer.
        """
        first, *rest = (*records,) or ({},)
        changes, events = [], []
        for record in rest:
            if "sequence" in record:
                events.append(LibraryEvent.from_json(record))
            elif type(version := record.get("version")) is int:
                changes.append(AppliedChange(version=version, change=change_from_json(record)))
            else:
                raise StoreFormatError(f"not a change (its version is {version!r:.50})")
        return cls(head=Head.from_json(first), changes=tuple(changes), events=tuple(events))


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


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.50} is not a number of the expected kind")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
