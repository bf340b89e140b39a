"""One file of the history: a change, what it made, and the digest of the file before it.

The file of place 7 is made once and never changed. It has one line for each definition and event,
so that a reviewer can fold it away and a diff of two branches is short.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agentkit.errors import DefinitionError, StoreFormatError
from agentkit.library.events import LibraryEvent
from agentkit.library.sqlite.connection import storable
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

FORMAT_VERSION = 1
"""Version of the files of a store: of its history and of its index."""

_MARKERS = (b"<" * 7, b"=" * 7, b">" * 7)  # as git writes them at the start of lines


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A change at its place in the history.

    Attributes:
        place: From 1; changes of events alone take places too.
        version: The library version once it had happened.
        digest: Of the file's content.
        previous: Digest of the file before it; empty for the first.
        record: What the file holds.
    """

    place: int
    version: int
    digest: str
    previous: str
    record: Mapping[str, Any]

    @property
    def makes_version(self) -> bool:
        """Whether the library differs afterwards."""
        return bool(self.record["upserts"] or self.record["removals"])

    @property
    def proposal_id(self) -> str:
        """By which a retry is recognised."""
        return str(self.record["proposal_id"])

    @property
    def removals(self) -> tuple[str, ...]:
        """Names that it took out."""
        return tuple(self.record["removals"])

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool that it changed."""
        return (*self.removals, *(one["definition"]["name"] for one in self.record["upserts"]))

    def put(self, tool_name: str) -> ToolDefinition | None:
        """The definition that it put for one tool; None when it put none.

        Raises:
            StoreFormatError: It can not be read.
        """
        row = self._rows.get(tool_name)
        return None if row is None else self._definition(row)

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, Any]]:
        return {one["definition"]["name"]: one for one in self.record["upserts"]}

    def _definition(self, row: Mapping[str, Any]) -> ToolDefinition:
        try:
            definition = ToolDefinition.from_json(row["definition"])
            actual = definition.digest
        except (DefinitionError, KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(
                f"the change at place {self.place} holds a definition that can not be read: {error}"
            ) from error
        if actual != row["digest"]:
            raise StoreFormatError(
                f"the change at place {self.place} says that the definition of "
                f"{definition.name!r} has the digest {row['digest'][:12]}, and it has "
                f"{actual[:12]}: it was changed after it was written; restore the file "
                "('git checkout', or a backup)"
            )
        return definition

    @cached_property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that it put.

        Raises:
            StoreFormatError: One can not be read.
        """
        return tuple(map(self._definition, self.record["upserts"]))

    @cached_property
    def events(self) -> tuple[LibraryEvent, ...]:
        """The events that it brought.

        Raises:
            StoreFormatError: One can not be read.
        """
        return tuple(map(LibraryEvent.from_json, self.record["events"]))

    @property
    def change(self) -> LibraryChange:
        """What was asked for, without its events."""
        return LibraryChange(
            proposal_id=self.proposal_id,
            upserts=self.upserts,
            removals=self.removals,
            author=self.record["author"],
            reason=self.record["reason"],
            evidence=tuple(self.record["evidence"]),
            created_at=self.record["created_at"],
        )

    def revision(self, tool_name: str) -> ToolRevision:
        """What it made of one tool; no other definition is read for it."""
        return ToolRevision(
            version=self.version,
            definition=self.put(tool_name),
            proposal_id=self.proposal_id,
            author=self.record["author"],
            reason=self.record["reason"],
            evidence=tuple(self.record["evidence"]),
            created_at=self.record["created_at"],
        )


def encoded(
    change: LibraryChange, *, place: int, version: int, previous: str, created_at: str
) -> bytes:
    """The file of a change."""
    head = {
        "format": FORMAT_VERSION,
        "place": place,
        "version": version,
        "previous": previous,
        "proposal_id": storable(change.proposal_id),
        "author": storable(change.author),
        "reason": storable(change.reason),
        "evidence": [storable(one) for one in change.evidence],
        "created_at": created_at,
        "removals": list(change.removals),
    }
    upserts = [{"digest": one.digest, "definition": one.to_json()} for one in change.upserts]
    events = [event.to_json() for event in change.events]
    lines = [f" {_json(name)}: {_json(value)}" for name, value in head.items()]
    lines += [
        f' "{name}": {_lines(rows)}' for name, rows in (("upserts", upserts), ("events", events))
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _lines(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "[]"
    return "[\n" + ",\n".join(f"  {_json(row)}" for row in rows) + "\n ]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def digest_of(content: bytes) -> str:
    """SHA-256 of a file's lines, whatever git made of their ends."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def decoded(content: bytes, path: Path, *, place: int) -> Entry:
    """The inverse of ``encoded``.

    Raises:
        StoreFormatError: The file is none of ours, damaged, holds what git could not merge, or was
            written by a newer agentkit.
    """
    record = json_object(content, path)
    check_format(record, path)
    _check_outline(record, path, place)
    return Entry(
        place=place,
        version=record["version"],
        digest=digest_of(content),
        previous=record["previous"],
        record=record,
    )


def json_object(content: bytes, path: Path) -> Mapping[str, Any]:
    """The JSON object in a file of the store.

    Raises:
        StoreFormatError: There is none, or git could not merge the file.
    """
    if has_markers(content):
        raise StoreFormatError(
            f"{path} holds what git could not merge: two branches each made a change at the same "
            f"place, and only one can stand. {one_side(path)}"
        )
    try:
        record = read_json(content)
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(record, dict):
        raise damaged(path, "it holds no JSON object")
    return record


def one_side(path: Path) -> str:
    """How to solve what git could not merge, for a file of the history or the index.

    Example:
        >>> print(one_side(Path("library/history/00000007.json"))[:71])
        Take one side: 'git checkout --ours -- library/history library/index.js
    """
    store = path.parent.parent if path.parent.name == "history" else path.parent
    return (
        f"Take one side: 'git checkout --ours -- {store / 'history'} {store / 'index.json'}' (or "
        "--theirs), delete files of the history that only the other side has, and leave those in "
        "'tools' merged: what the other side changed are then edits by hand (docs/directory.md)"
    )


def has_markers(content: bytes) -> bool:
    """Whether git left its marks of a conflict in a file."""
    if _MARKERS[0] not in content:
        return False
    lines = content.splitlines()
    return all(any(line.startswith(mark) for line in lines) for mark in _MARKERS)


def damaged(path: Path, why: str) -> StoreFormatError:
    """The error for a file that is not as the store wrote it."""
    return StoreFormatError(
        f"{path} is damaged: {why}. Nothing was changed; restore it ('git checkout -- FILE', or a "
        "backup)"
    )


def check_format(record: Mapping[str, Any], path: Path) -> None:
    """Refuse what a newer agentkit wrote.

    Raises:
        StoreFormatError: It is newer, or has no format.
    """
    form = record.get("format")
    if type(form) is not int or form < 1:
        raise StoreFormatError(
            f"{path} was not written by agentkit, it has no 'format'. Nothing was changed; choose "
            "another folder, or move the file away"
        )
    if form > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {form}, this agentkit reads up to {FORMAT_VERSION}. Nothing was "
            "changed; run: pip install --upgrade agentkit-evolve"
        )


_SHAPE: Mapping[str, type] = {
    "place": int,
    "version": int,
    "previous": str,
    "proposal_id": str,
    "author": str,
    "reason": str,
    "created_at": str,
    "evidence": list,
    "removals": list,
    "upserts": list,
    "events": list,
}


def _check_outline(record: Mapping[str, Any], path: Path, place: int) -> None:
    for name, kind in _SHAPE.items():
        if type(record.get(name)) is not kind:
            raise damaged(path, f"{name!r} is {record.get(name)!r:.60}")
    if record["place"] != place:
        raise damaged(path, f"it is the change of place {record['place']}")
    texts = [*record["evidence"], *record["removals"]]
    if not all(isinstance(text, str) for text in texts):
        raise damaged(path, "what should be text is not")
    for one in record["upserts"]:
        is_whole = isinstance(one, dict) and isinstance(one.get("digest"), str)
        if not is_whole or not isinstance(one.get("definition"), dict):
            raise damaged(path, f"it holds {one!r:.60} in the place of a definition")
        if not isinstance(one["definition"].get("name"), str):
            raise damaged(path, "it holds a definition without a name")
