"""What the history of a store comes to, kept up one change at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import StoreFormatError
from agentkit.library.directory.entries import Entry, damaged, one_side
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

_FEW = 16
"""So many changes are made to a snapshot one by one; more are worked out together."""


@dataclass(kw_only=True)
class Past:
    """The places up to ``length``, and the library that they come to.

    Attributes:
        length: The last place.
        head: Digest of the file at the last place.
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

    length: int = 0
    head: str = ""
    version: int = 0
    shown: tuple[int, str] = (0, "")
    made_by: dict[str, int] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)
    version_places: list[int] = field(default_factory=list)
    event_ends: list[int] = field(default_factory=list)
    last_event: LibraryEvent | None = None
    touched: dict[str, list[int]] = field(default_factory=dict)
    definitions: dict[str, ToolDefinition] = field(default_factory=dict)

    def apply(self, entry: Entry, path: Path) -> None:
        """Take up the change at the next place; all of it, or nothing when it does not fit.

        Raises:
            StoreFormatError: It follows another history, or is damaged.
        """
        check_follows_file(entry, self.head, path)
        events, upserts = entry.events, entry.upserts
        if entry.version != self.version + entry.makes_version:
            raise damaged(path, f"it says that it made version {entry.version}")
        if absent := [name for name in entry.removals if name not in self.definitions]:
            raise damaged(path, f"it takes out {absent[0]!r}, which is not there")
        end = self.event_ends[-1] if self.event_ends else 0
        if [event.sequence for event in events] != list(range(end + 1, end + 1 + len(events))):
            raise damaged(path, f"its events do not follow event {end}")
        self.length, self.head, self.version = entry.place, entry.digest, entry.version
        self.digests.append(entry.digest)
        if entry.makes_version:
            self.made_by[entry.proposal_id] = entry.version
            self.version_places.append(entry.place)
            self.shown = (entry.place, entry.digest)
        self.event_ends.append(end + len(events))
        if events:
            self.last_event = events[-1]
        for name in entry.names:
            self.touched.setdefault(name, []).append(entry.place)
        for name in entry.removals:
            del self.definitions[name]
        self.definitions |= {one.name: one for one in upserts}

    def library(self, before: Library, entries: Sequence[Entry]) -> Library:
        """The newest snapshot, from the one that was there before ``entries``.

        Args:
            before: A snapshot of this history, or the empty library.
            entries: What came since, as far as it was read.
        """
        made = [entry for entry in entries if entry.makes_version]
        if len(made) > _FEW or before.version + len(made) != self.version:
            return Library(self.definitions.values(), version=self.version).continuing(before)
        for entry in made:
            before = applied(before, entry)
        return before

    def to_json(self) -> dict[str, Any]:
        """All of it, for a quick start."""
        last = self.last_event
        return {
            "length": self.length,
            "head": self.head,
            "version": self.version,
            "shown": self.shown,
            "made_by": self.made_by,
            "digests": self.digests,
            "version_places": self.version_places,
            "event_ends": self.event_ends,
            "last_event": None if last is None else last.to_json(),
            "touched": self.touched,
            "definitions": [[one.digest, one.to_json()] for one in self.definitions.values()],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Past:
        """The inverse of ``to_json``."""
        last = record["last_event"]
        read = (
            ToolDefinition.from_json(one, digest=digest) for digest, one in record["definitions"]
        )
        return cls(
            length=record["length"],
            head=record["head"],
            version=record["version"],
            shown=tuple(record["shown"]),
            made_by=record["made_by"],
            digests=record["digests"],
            version_places=record["version_places"],
            event_ends=record["event_ends"],
            last_event=None if last is None else LibraryEvent.from_json(last),
            touched=record["touched"],
            definitions={one.name: one for one in read},
        )


def applied(library: Library, entry: Entry) -> Library:
    """The snapshot after a change; a known name keeps its place in the order."""
    rest = library.without(entry.removals) if entry.removals else library
    return rest.with_tools(entry.upserts).at_version(entry.version)


def check_follows_file(entry: Entry, head: str, path: Path) -> None:
    """Refuse a file that was made behind another one than stands before it now.

    Raises:
        StoreFormatError: It was.
    """
    if entry.previous != head:
        raise StoreFormatError(
            f"the history is forked: {path} follows another change than the one at place "
            f"{entry.place - 1}. Two branches were merged, or a file was changed by hand. Nothing "
            f"was changed. {one_side(path)}"
        )
