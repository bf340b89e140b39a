"""``check_store``: whether all that a store holds is as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agentkit.episodes.files import telling_unreadable
from agentkit.errors import AgentKitError, StoreUnavailableError
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.changes import actual_digest
from agentkit.library.copying import episodes_of
from agentkit.library.events import Verifier
from agentkit.library.library import Library
from agentkit.library.pins import pin_faults
from agentkit.library.store import Checkable, Store, StoreFault
from agentkit.tools.definition import ToolDefinition

_UNREADABLE = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""Exceptions caused by damaged data; a check reports them as a ``StoreFault``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreCheck:
    """The result of a check.

    Attributes:
        versions: How many library versions could be read.
        tools: How many tools the newest library has.
        events: How many events could be read.
        episodes: How many episodes could be read, from the oldest on.
        faults: What is not as it was written.
        notes: What is worth to know, and no fault.
    """

    versions: int
    tools: int
    events: int
    episodes: int
    faults: tuple[StoreFault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """The check as a JSON object."""
        return {
            "is_sound": self.is_sound,
            "versions": self.versions,
            "tools": self.tools,
            "events": self.events,
            "episodes": self.episodes,
            "faults": [{"place": one.place, "message": one.message} for one in self.faults],
            "notes": list(self.notes),
        }


def check_store(store: Store, *, verifier: Verifier | None = None) -> StoreCheck:
    """Read all that a store holds, and tell what is damaged. Nothing is written.

    Looked at are: what a ``Checkable`` store looks for itself; every change, with the digests of
    definitions recomputed; whether the newest library is what the changes make; the chain of
    events, its signatures where there is a verifier, and whether the definitions are as events say;
    the pins of composites; every episode. A part that cannot be read does not keep others from it.

    Args:
        store: Where to look.
        verifier: Checks the signatures of events; None leaves them alone.

    Raises:
        StoreUnavailableError: The store cannot be reached, which says nothing of what it holds.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> store = open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(add, expected_version=0)
        1
        >>> found = check_store(store)
        >>> found.is_sound, found.versions, found.notes
        (True, 1, ('no event tells of library version 1',))
    """
    check = _Check(store)
    for place, look in (
        ("store", check.run_own_check),
        ("versions", check.check_versions),
        ("library", check.check_newest),
        ("events", lambda: check.check_events(verifier)),
        ("episodes", check.check_episodes),
    ):
        with check.part(place):
            look()
    return StoreCheck(
        versions=check.versions,
        tools=len(check.newest),
        events=check.events,
        episodes=check.episodes,
        faults=tuple(check.faults.values()),
        notes=tuple(check.notes),
    )


@dataclass
class _Check:
    """One check while it runs; several parts may meet the same fault, which is reported once."""

    store: Store
    versions: int = 0
    events: int = 0
    episodes: int = 0
    newest: Library = field(default_factory=Library)
    made: dict[str, str] | None = None
    faults: dict[tuple[str, str], StoreFault] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def part(self, place: str) -> Iterator[None]:
        """Report an unreadable part of the store as a fault and go on with the rest."""
        try:
            yield
        except StoreUnavailableError:
            raise
        except AgentKitError as error:
            fault = StoreFault(place=place, message=f"reading ends here: {error}")
            self.faults.setdefault(("", str(error)), fault)
        except _UNREADABLE as error:
            kind = type(error).__name__
            self.report(place, f"reading ends here, at what no store writes ({kind}: {error})")

    def report(self, place: str, message: str) -> None:
        """Note a fault, unless it was met before."""
        self.faults.setdefault((place, message), StoreFault(place=place, message=message))

    def run_own_check(self) -> None:
        """Run the store's own check."""
        if isinstance(self.store, Checkable):
            for fault in self.store.check():
                if fault.is_note:
                    self.notes.append(f"{fault.place}: {fault.message}")
                else:
                    self.report(fault.place, fault.message)

    def check_versions(self) -> None:
        """Every change, one after the other, and what they make together."""
        made: dict[str, str] = {}
        for applied in self.store.changes():
            place = f"version {applied.version}"
            if self.versions and applied.version != self.versions + 1:
                self.report(
                    place, f"it follows version {self.versions}: what was between is missing"
                )
            if not applied.change.makes_version:
                self.report(place, "it changed no tool: somebody took its revisions away")
            for name in applied.change.removals:
                if made.pop(name, None) is None:
                    self.report(place, f"it removes {name!r}, which was not there before it")
            for definition in applied.change.upserts:
                made[definition.name] = self.look_at(definition, place)
            self.versions = applied.version
        self.made = made

    def look_at(self, definition: ToolDefinition, place: str) -> str:
        """The digest of a definition; a fault when it is not the one by which it is kept."""
        actual = actual_digest(definition)
        if actual != definition.digest:
            self.report(
                place,
                f"tool {definition.name!r} was changed after it was written: its digest is "
                f"{actual[:12]}, it is kept as {definition.digest[:12]}; restore it from a backup, "
                "or roll the tool back to another version",
            )
        return actual

    def check_newest(self) -> None:
        """The newest library: whether it is what the changes made, and its pins."""
        self.newest = self.store.load()
        loaded = {one.name: self.look_at(one, "library") for one in self.newest.definitions}
        if self.made is not None and self.newest.version == self.versions:
            if list(loaded) != list(self.made):
                self.report("library", "its tools or their order are not those its changes made")
            for name in loaded.keys() & self.made.keys():
                if loaded[name] != self.made[name]:
                    self.report("library", f"tool {name!r} is not as the last change of it made it")
        for fault in pin_faults(self.newest):
            self.report(f"tool {fault.tool!r}", f"{fault.message}; {fault.advice}")

    def check_events(self, verifier: Verifier | None) -> None:
        """The chain, and what it says of the definitions."""
        events = self.store.events()
        self.events = len(events)
        for one in (
            *verify_chain(events, verifier=verifier),
            *verify_library(self.store, events),
        ):
            if one.is_note:
                self.notes.append(one.message)
            else:
                self.report(f"event {one.sequence}", one.message)

    def check_episodes(self) -> None:
        """Every episode can be read."""
        with telling_unreadable(self._unreadable):
            for _ in episodes_of(self.store):
                self.episodes += 1

    def _unreadable(self, episode_id: str, reason: str) -> None:
        message = f"it cannot be read, and listings leave it out: {reason}"
        self.report(f"episode {episode_id}", message)
