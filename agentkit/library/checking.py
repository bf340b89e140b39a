"""``check_store``: whether all that a store holds is as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agentkit.episodes.files import telling_unreadable
from agentkit.errors import AgentKitError, StoreUnavailableError
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.changes import actual_digest
from agentkit.library.copying import episodes_of
from agentkit.library.events import Verifier
from agentkit.library.library import Library
from agentkit.library.pins import library_faults
from agentkit.library.store import Checkable, Store, StoreFault
from agentkit.tools.definition import ToolDefinition

_UNREADABLE = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""Exceptions caused by damaged data; a check reports them as a ``StoreFault``."""


@dataclass(kw_only=True)
class StoreCheck:
    """The result of a check.

    Attributes:
        versions: How many library versions could be read.
        events: How many events could be read.
        episodes: How many episodes could be read, from the oldest on.
        library: The newest library; empty where it cannot be read.
        found: Faults and notes, each once, in the order of reading.
    """

    versions: int = 0
    events: int = 0
    episodes: int = 0
    library: Library = field(default_factory=Library)
    found: dict[StoreFault, None] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[StoreFault, ...]:
        """What is not as it should be."""
        return tuple(one for one in self.found if not one.is_note)

    @property
    def is_sound(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    @property
    def notes(self) -> tuple[StoreFault, ...]:
        """What is worth to know, and no fault."""
        return tuple(one for one in self.found if one.is_note)

    def report(self, place: str, message: str, *, advice: str = "") -> None:
        """Note damage; several parts of a check may meet the same."""
        self.found[StoreFault(place=place, message=message, advice=advice)] = None


def check_store(store: Store, *, verifier: Verifier | None = None) -> StoreCheck:
    """Read all that a store holds, and tell what is damaged. Nothing is written.

    Looked at are: what a ``Checkable`` store looks for itself; every change, with the digests of
    definitions recomputed; whether the newest library is what the changes make, and its composites;
    the chain of events, its signatures where there is a verifier, and whether the definitions are
    as events say; every episode. A part that cannot be read does not keep others from it.

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
        >>> found.faults, found.versions, [note.message for note in found.notes]
        ((), 1, ['no event tells of library version 1'])
    """
    check = StoreCheck()
    with _part(check, "store"):
        if isinstance(store, Checkable):
            check.found |= dict.fromkeys(store.check())
    made: dict[str, str] | None = None
    with _part(check, "versions"):
        made = _made_by_changes(check, store)
    with _part(check, "library"):
        _check_newest(check, store, made)
    with _part(check, "events"):
        events = store.events()
        check.events = len(events)
        check.found |= dict.fromkeys(verify_chain(events, verifier=verifier))
        check.found |= dict.fromkeys(verify_library(store, events))
    with (
        _part(check, "episodes"),
        telling_unreadable(
            lambda episode_id, reason: check.report(
                f"episode {episode_id}", f"it cannot be read, and listings leave it out: {reason}"
            )
        ),
    ):
        for _ in episodes_of(store):
            check.episodes += 1
    return check


@contextmanager
def _part(check: StoreCheck, place: str) -> Iterator[None]:
    """Report an unreadable part of the store as a fault, and go on with the rest."""
    try:
        yield
    except StoreUnavailableError:
        raise
    except AgentKitError as error:
        message = f"reading ends here: {error}"
        if all(one.message != message for one in check.found):  # every part meets it
            check.report(place, message)
    except _UNREADABLE as error:
        kind = type(error).__name__
        check.report(place, f"reading ends here, at what no store writes ({kind}: {error})")


def _made_by_changes(check: StoreCheck, store: Store) -> dict[str, str]:
    """The digests of the tools that every change, one after the other, comes to."""
    made: dict[str, str] = {}
    for applied in store.changes():
        place = f"version {applied.version}"
        if check.versions and applied.version != check.versions + 1:
            words = f"it follows version {check.versions}: what was between is missing"
            check.report(place, words)
        if not applied.change.makes_version:
            check.report(place, "it changed no tool: somebody took its revisions away")
        for name in applied.change.removals:
            if made.pop(name, None) is None:
                check.report(place, f"it removes {name!r}, which was not there before it")
        for definition in applied.change.upserts:
            made[definition.name] = _digest(check, definition, place)
        check.versions = applied.version
    return made


def _check_newest(check: StoreCheck, store: Store, made: dict[str, str] | None) -> None:
    """Whether the newest library is what the changes made, and its composites are sound."""
    check.library = store.load()
    loaded = {one.name: _digest(check, one, "library") for one in check.library.all_definitions}
    if made is not None and check.library.version == check.versions:
        if list(loaded) != list(made):
            check.report("library", "its tools or their order are not those its changes made")
        for name in loaded.keys() & made.keys():
            if loaded[name] != made[name]:
                check.report("library", f"tool {name!r} is not as the last change of it made it")
    check.found |= dict.fromkeys(library_faults(check.library))


def _digest(check: StoreCheck, definition: ToolDefinition, place: str) -> str:
    """The digest of a definition; a fault when it is not the one by which it is kept."""
    actual = actual_digest(definition)
    if actual != definition.digest:
        words = (
            f"tool {definition.name!r} was changed after it was written: its digest is "
            f"{actual[:12]}, it is kept as {definition.digest[:12]}"
        )
        advice = "restore it from a backup, or roll the tool back to another version"
        check.report(place, words, advice=advice)
    return actual
