"""The history of a directory store: one file a change, and what they come to."""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentkit.errors import DefinitionError, StoreFormatError
from agentkit.library.changes import no_such_version, now
from agentkit.library.directory.folder import Folder, Signature
from agentkit.library.events import LibraryEvent, storable
from agentkit.library.library import Library, RecentVersions
from agentkit.library.store import AppliedChange, LibraryChange, ToolRevision
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

FORMAT_VERSION = 1
"""Version of the files of a store: of its history and of its index."""

_MARKERS = (b"<" * 7, b"=" * 7, b">" * 7)  # as git writes them at the start of lines

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


# One file.


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A change at its place in the history.

    Attributes:
        digest: Of the file's content.
        record: What the file holds. Definitions and events are read from it when asked for.
    """

    digest: str
    record: Mapping[str, Any]

    @property
    def place(self) -> int:
        """From 1; changes of events alone take places too."""
        return int(self.record["place"])

    @property
    def version(self) -> int:
        """The library version once it had happened."""
        return int(self.record["version"])

    @property
    def makes_version(self) -> bool:
        """Whether the library differs afterwards."""
        return bool(self._rows or self.removals)

    @property
    def removals(self) -> tuple[str, ...]:
        """Names that it took out."""
        return tuple(self.record["removals"])

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool that it changed."""
        return (*self.removals, *self._rows)

    @cached_property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that it put; ``StoreFormatError`` where one can not be read."""
        return tuple(map(self._definition, self._rows))

    @cached_property
    def events(self) -> tuple[LibraryEvent, ...]:
        """The events that it brought; ``StoreFormatError`` where one can not be read."""
        return tuple(map(LibraryEvent.from_json, self.record["events"]))

    @property
    def change(self) -> LibraryChange:
        """What was asked for, without its events."""
        return LibraryChange(upserts=self.upserts, removals=self.removals, **self._words)

    def revision(self, tool_name: str) -> ToolRevision:
        """What it made of one tool; no other definition is read for it."""
        definition = self._definition(tool_name) if tool_name in self._rows else None
        return ToolRevision(version=self.version, definition=definition, **self._words)

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, Any]]:
        return {one["definition"]["name"]: one for one in self.record["upserts"]}

    @property
    def _words(self) -> dict[str, Any]:
        names = ("proposal_id", "author", "reason", "created_at")
        words = {name: self.record[name] for name in names}
        return words | {"evidence": tuple(self.record["evidence"])}

    def _definition(self, tool_name: str) -> ToolDefinition:
        row = self._rows[tool_name]
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


def encoded(change: LibraryChange, *, place: int, version: int, previous: str) -> bytes:
    """The file of a change, which follows the one of the digest ``previous``."""
    head = {
        "format": FORMAT_VERSION,
        "place": place,
        "version": version,
        "previous": previous,
        "proposal_id": storable(change.proposal_id),
        "author": storable(change.author),
        "reason": storable(change.reason),
        "evidence": [storable(one) for one in change.evidence],
        "created_at": change.created_at or now(),
        "removals": list(change.removals),
    }
    upserts = [{"digest": one.digest, "definition": one.to_json()} for one in change.upserts]
    events = [event.to_json() for event in change.events]
    lines = [f" {_json(name)}: {_json(value)}" for name, value in head.items()]
    for name, rows in (("upserts", upserts), ("events", events)):
        inside = ",\n".join(f"  {_json(row)}" for row in rows)
        lines.append(f' "{name}": [\n{inside}\n ]' if rows else f' "{name}": []')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def decoded(content: bytes, path: Path, *, place: int) -> Entry:
    """The inverse of ``encoded``.

    Raises:
        StoreFormatError: The file is none of ours, damaged, holds what git could not merge, or was
            written by a newer agentkit.
    """
    record = json_object(content, path)
    for name, kind in _SHAPE.items():
        if type(record.get(name)) is not kind:
            raise damaged(path, f"{name!r} is {record.get(name)!r:.60}")
    if record["place"] != place:
        raise damaged(path, f"it is the change of place {record['place']}")
    if not all(isinstance(text, str) for text in (*record["evidence"], *record["removals"])):
        raise damaged(path, "what should be text is not")
    for one in record["upserts"]:
        definition = one.get("definition") if isinstance(one, dict) else None
        is_named = isinstance(definition, dict) and isinstance(definition.get("name"), str)
        if not is_named or not isinstance(one.get("digest"), str):
            raise damaged(path, f"it holds {one!r:.60} in the place of a definition")
    return Entry(digest=digest_of(content), record=record)


def digest_of(content: bytes) -> str:
    """SHA-256 of a file's lines, whatever git made of their ends."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def json_object(content: bytes, path: Path) -> Mapping[str, Any]:
    """The JSON object in a file of the store.

    Raises:
        StoreFormatError: There is none, git could not merge the file, it is not ours, or a newer
            agentkit wrote it.
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
        "'tools' merged: what the other side changed are then edits by hand (docs/stores.md)"
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


# All of them.

_FEW = 16
"""So many changes are made to a snapshot one by one; more are worked out together."""


@dataclass(kw_only=True)
class HistoryState:
    """The places that were read, and the library that they come to.

    Attributes:
        version: The newest library version.
        shown: Place and digest of the file that made it; 0 and nothing for none.
        made_by: Version by the id of the proposal that made it.
        digests: Of the file at each place.
        version_places: Place of each version; that of version 1 comes first.
        event_ends: For each place, how many events there are up to it.
        last_event: The end of the chain of events.
        touched: Places at which a tool changed, by its name.
        definitions: The newest ones, in the library's order.
    """

    version: int = 0
    shown: tuple[int, str] = (0, "")
    made_by: dict[str, int] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)
    version_places: list[int] = field(default_factory=list)
    event_ends: list[int] = field(default_factory=list)
    last_event: LibraryEvent | None = None
    touched: dict[str, list[int]] = field(default_factory=dict)
    definitions: dict[str, ToolDefinition] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The last place."""
        return len(self.digests)

    @property
    def head(self) -> str:
        """Digest of the file at the last place."""
        return self.digests[-1] if self.digests else ""

    def apply(self, entry: Entry, path: Path) -> None:
        """Take up the change at the next place; all of it, or nothing when it does not fit.

        Raises:
            StoreFormatError: It follows another history, or is damaged.
        """
        _check_follows(entry, self.head, path)
        events, upserts = entry.events, entry.upserts
        if entry.version != self.version + entry.makes_version:
            raise damaged(path, f"it says that it made version {entry.version}")
        if absent := [name for name in entry.removals if name not in self.definitions]:
            raise damaged(path, f"it takes out {absent[0]!r}, which is not there")
        end = self.event_ends[-1] if self.event_ends else 0
        if [event.sequence for event in events] != list(range(end + 1, end + 1 + len(events))):
            raise damaged(path, f"its events do not follow event {end}")
        self.digests.append(entry.digest)
        self.version = entry.version
        if entry.makes_version:
            self.made_by[entry.record["proposal_id"]] = entry.version
            self.version_places.append(entry.place)
            self.shown = (entry.place, entry.digest)
        self.event_ends.append(end + len(events))
        self.last_event = events[-1] if events else self.last_event
        for name in entry.names:
            self.touched.setdefault(name, []).append(entry.place)
        for name in entry.removals:
            del self.definitions[name]
        self.definitions |= {one.name: one for one in upserts}

    def library(self, before: Library, entries: Sequence[Entry]) -> Library:
        """The newest snapshot, from the one that was there before ``entries``."""
        made = [entry for entry in entries if entry.makes_version]
        if len(made) > _FEW or before.version + len(made) != self.version:
            return Library(self.definitions.values(), version=self.version).continuing(before)
        for entry in made:
            rest = before.without(entry.removals) if entry.removals else before
            before = rest.with_tools(entry.upserts).at_version(entry.version)
        return before


def _check_follows(entry: Entry, head: str, path: Path) -> None:
    """Refuse a file that was made behind another one than stands before it now."""
    if entry.record["previous"] != head:
        raise StoreFormatError(
            f"the history is forked: {path} follows another change than the one at place "
            f"{entry.place - 1}. Two branches were merged, or a file was changed by hand. Nothing "
            f"was changed. {one_side(path)}"
        )


class History:
    """The files of ``history/``, as far as they were read. Safe to use from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.lock = threading.RLock()  # holds still what ``refresh`` gave
        self._past = HistoryState()
        self._is_read = False
        self._signature: Signature | None = None  # of the file at the last place
        self._newest = Library()
        self._older = RecentVersions()
        # Tools share large changes; an import of thousands is one.
        self._entry = lru_cache(maxsize=4)(self._read_unchanged)

    def refresh(self) -> tuple[HistoryState, Library]:
        """Take up what anybody added, and what git put in the place of what was there.

        Returns:
            What the history comes to, which goes on changing, and the newest snapshot.

        Raises:
            StoreFormatError: The history is damaged, forked, or was written by a newer agentkit.
        """
        with self.lock:
            last = self._past.length
            if not self._is_read or (last and self._sign(last) != self._signature):
                self._read_anew()
            elif self._sign(last + 1) is not None:
                self._catch_up(self._past)
            return self._past, self._newest

    def _sign(self, place: int) -> Signature | None:
        return self._folder.signature(self._folder.entry(place))

    def _read_anew(self) -> None:
        self._is_read = False
        self._older = RecentVersions()
        past = HistoryState()
        self._catch_up(past)
        highest = self._highest()
        if highest > past.length:
            self._catch_up(past)  # somebody may have added while the names were listed
        if highest > past.length:
            raise StoreFormatError(
                f"{self._folder.entry(past.length + 1)} is missing, the history goes up to place "
                f"{highest}. Nothing was changed; restore the folder ('git checkout', or a backup)"
            )
        self._is_read = True

    def _highest(self) -> int:
        """The last place that has a file, whether it can be read or not."""
        with self._folder.translated(self._folder.history):
            if not self._folder.history.exists():
                return 0
            stems = [one.stem for one in self._folder.history.iterdir() if one.suffix == ".json"]
        return max((int(one) for one in stems if one.isascii() and one.isdecimal()), default=0)

    def _catch_up(self, past: HistoryState) -> None:
        entries = []
        try:
            while (entry := self._read(past.length + 1)) is not None:
                past.apply(entry, self._folder.entry(entry.place))
                entries.append(entry)
        finally:
            if past is self._past:
                self._newest = past.library(self._newest, entries)
            else:
                self._newest = past.library(Library(), entries).continuing(self._newest)
            self._past = past
            self._signature = self._sign(past.length) if past.length else None

    def _read(self, place: int) -> Entry | None:
        """The change at a place; None where there is none."""
        path = self._folder.entry(place)
        with self._folder.translated(path):
            try:
                content = self._folder.plain(path)
            except FileNotFoundError:
                return None
        return decoded(content, path, place=place)

    def entries(self, start: int, end: int) -> Iterator[Entry]:
        """The changes from one place to another, both included.

        Raises:
            StoreFormatError: One is missing, damaged, or follows another history.
        """
        for place in range(start, end + 1):
            found, path = self._read(place), self._folder.entry(place)
            if found is None:
                raise StoreFormatError(
                    f"{path} is gone; open the store again, or restore the folder ('git checkout', "
                    "or a backup)"
                )
            known = self._past.digests
            if place <= len(known) and known[place - 1] != found.digest:
                raise damaged(path, "it was changed after it was written, and later files follow")
            yield found

    def _read_unchanged(self, place: int, _signature: Signature | None) -> Entry:
        (entry,) = self.entries(place, place)
        return entry

    def at(self, version: int) -> Library:
        """The snapshot at a version.

        Raises:
            StoreError: There is no such version.
        """
        past, newest = self.refresh()
        if not 0 <= version <= past.version:
            raise no_such_version(version, range(1, past.version + 1))
        if version == newest.version:
            return newest
        held = self._older.get(version)
        if held is None:
            tools: dict[str, ToolDefinition] = {}
            for entry in self.entries(1, past.version_places[version - 1] if version else 0):
                for name in entry.removals:
                    del tools[name]
                tools |= {one.name: one for one in entry.upserts}
            held = Library(tools.values(), version=version).continuing(newest)
            self._older.put(held)
        return held

    def changes(self, after: int) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, ascending."""
        past, _ = self.refresh()
        places = past.version_places[max(after, 0) :]
        for entry in self.entries(places[0], places[-1]) if places else ():
            if entry.makes_version:
                yield AppliedChange(version=entry.version, change=entry.change)

    def events(self, after: int) -> tuple[LibraryEvent, ...]:
        """The events behind ``after``, ascending."""
        past, _ = self.refresh()
        first = bisect_right(past.event_ends, max(after, 0)) + 1
        found = (event for entry in self.entries(first, past.length) for event in entry.events)
        return tuple(event for event in found if event.sequence > after)

    def revisions(self, tool_name: str) -> tuple[ToolRevision, ...]:
        """All revisions of one tool in ascending order."""
        past, _ = self.refresh()
        with self.lock:
            places = tuple(past.touched.get(tool_name, ()))
            entries = [self._entry(place, self._sign(place)) for place in places]
        return tuple(entry.revision(tool_name) for entry in entries)

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """A definition that a tool has or had, by its digest; None when it never had that one."""
        found = (revision.definition for revision in reversed(self.revisions(tool_name)))
        return next((one for one in found if one is not None and one.digest == digest), None)
