"""The history of a store: reading it, and adding to it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from agentkit.errors import StoreFormatError
from agentkit.library.abilities import AppliedChange
from agentkit.library.changes import no_such_version
from agentkit.library.directory.checkpoint import Checkpoint
from agentkit.library.directory.entries import Entry, damaged, decoded
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.past import Past, applied, check_follows_file
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.recent_versions import RecentVersions
from agentkit.library.store import ToolRevision
from agentkit.tools.definition import ToolDefinition

_Signature: TypeAlias = tuple[int, int, int]

_MOST_RECENT = 4
"""So many changes are held for histories of tools. An import of thousands is a large one."""


class Log:
    """The files of ``history/``, as far as they were read. Safe to use from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._checkpoint = Checkpoint(folder)
        self.lock = threading.RLock()  # holds still what ``refresh`` gave
        self._past = Past()
        self._is_read = False
        self._signature: _Signature | None = None  # of the file at the last place
        self._newest = Library()
        self._older = RecentVersions()
        self._recent: dict[int, tuple[_Signature | None, Entry]] = {}  # the last one used is last

    def refresh(self) -> tuple[Past, Library]:
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

    def _read_anew(self) -> None:
        """Read everything, from the checkpoint on where there is one that belongs to it."""
        self._is_read = False
        self._older = RecentVersions()
        past = self._checkpoint.read() or Past()
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

    def _catch_up(self, past: Past) -> None:
        entries, size = [], 0
        try:
            while (found := self._read(past.length + 1)) is not None:
                entry, length = found
                past.apply(entry, self._folder.entry(entry.place))
                entries.append(entry)
                size += length
        finally:
            self._newest = (
                past.library(self._newest, entries)
                if past is self._past
                else past.library(Library(), entries).continuing(self._newest)
            )
            self._past = past
            self._signature = self._sign(past.length) if past.length else None
        self._checkpoint.grown(past, size)

    def _read(self, place: int) -> tuple[Entry, int] | None:
        """The change at a place and the size of its file; None where there is none."""
        path = self._folder.entry(place)
        with self._folder.translated(path):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                return None
        return decoded(content, path, place=place), len(content)

    def _sign(self, place: int) -> _Signature | None:
        """By which a file that was put in the place of another is told apart."""
        path = self._folder.entry(place)
        with self._folder.translated(path):
            try:
                found = path.stat()
            except FileNotFoundError:
                return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _highest(self) -> int:
        return max(self.places(), default=0)

    def places(self) -> list[int]:
        """The places that have a file, whether it can be read or not."""
        with self._folder.translated(self._folder.history):
            try:
                names = [path.name for path in self._folder.history.iterdir()]
            except FileNotFoundError:
                return []
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdecimal() and stem.isascii())

    def entries(self, start: int, end: int) -> Iterator[Entry]:
        """The changes from one place to another, both included.

        Raises:
            StoreFormatError: One is missing, damaged, or follows another history.
        """
        head = None
        for place in range(start, end + 1):
            found = self._read(place)
            if found is None:
                raise StoreFormatError(
                    f"{self._folder.entry(place)} is gone; open the store again, or restore the "
                    "folder ('git checkout', or a backup)"
                )
            if head is not None:
                check_follows_file(found[0], head, self._folder.entry(place))
            head = found[0].digest
            known = self._past.digests
            if place <= len(known) and known[place - 1] != head:
                path = self._folder.entry(place)
                raise damaged(path, "it was changed after it was written, and later files follow")
            yield found[0]

    def at(self, version: int) -> Library:
        """The snapshot at a version.

        Raises:
            StoreError: There is no such version.
        """
        past, newest = self.refresh()
        if version == newest.version:
            return newest
        if not 0 <= version <= past.version:
            raise no_such_version(version, range(1, past.version + 1))
        older = self._older
        held = Library() if version == 0 else older.get(version)
        if held is not None:
            return held
        nearest = max((one for one in older.versions if one < version), default=0)
        known = older.get(nearest)
        base = Library() if known is None else known  # an empty library is false
        start = past.version_places[base.version - 1] + 1 if base.version else 1
        for entry in self.entries(start, past.version_places[version - 1]):
            if entry.makes_version:
                base = applied(base, entry)
        older.put(base)
        return base

    def changes(self, after: int) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, ascending."""
        past, _ = self.refresh()
        places = past.version_places[max(after, 0) :]
        if not places:
            return
        for entry in self.entries(places[0], places[-1]):
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
        places = tuple(past.touched.get(tool_name, ()))
        return tuple(self._entry(place).revision(tool_name) for place in places)

    def _entry(self, place: int) -> Entry:
        """The change at a place; those asked for last are held, for tools share large ones."""
        with self.lock:
            signature, held = self._sign(place), self._recent.pop(place, None)
            if held is not None and held[0] == signature:
                entry = held[1]
            else:
                (entry,) = self.entries(place, place)
            self._recent[place] = signature, entry
            if len(self._recent) > _MOST_RECENT:
                del self._recent[next(iter(self._recent))]
            return entry

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """A definition that a tool has or had, by its digest; None when it never had that one."""
        found = (revision.definition for revision in reversed(self.revisions(tool_name)))
        return next((one for one in found if one is not None and one.digest == digest), None)
