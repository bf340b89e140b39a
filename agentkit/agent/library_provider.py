"""Which library snapshot a run is pinned to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from agentkit import library as library_door
from agentkit.errors import LibraryWarning, UsageError
from agentkit.library.capabilities import SelfRefreshing
from agentkit.library.code_binding import (
    CodeBinding,
    bound_as_held,
    pinned,
    with_code,
    without_code,
)
from agentkit.library.library import Library, RecentVersions
from agentkit.library.store import Store
from agentkit.tools.tool import Tool


class LibraryProvider:
    """The current snapshot, and older ones for conversations that began on them.

    Of the older ones the ``MOST_VERSIONS`` that were used last are held; others are read from the
    store again.

    Args:
        store: Where versions come from; None when the tools live in code only. One that refreshes
            itself, a ``Replica``, hands over each new version when it is there; of others
            ``refresh`` takes them up.
        library: A snapshot to use instead of the store's; it then never changes.
        tools: Tools in code, bound to the store's definitions of their names, and registered where
            it knows none (``agentkit.library.code_binding``).
        pin: A library version that every run uses; None for the newest.
        frozen: Refuse to begin where code and library differ.
        hides_unbound: Leave out tools without code.

    Attributes:
        binding: What binding the code came to.
    """

    def __init__(
        self,
        *,
        store: Store | None,
        library: Library | None,
        tools: Sequence[Tool],
        pin: int | None = None,
        frozen: bool = False,
        hides_unbound: bool = False,
    ) -> None:
        self._store = store if library is None else None
        self._tools = tuple(tools)
        self._hides_unbound = hides_unbound
        self._older = RecentVersions()
        bound, self.binding = self._bound(library, pin, frozen=frozen)
        for note in self.binding.notes:
            warnings.warn(note, LibraryWarning, stacklevel=3)  # where the agent is made
        self._current = self._shown(bound)
        self._pin = pin
        source: object = self._store
        self._replica = source if isinstance(source, SelfRefreshing) else None
        if self._replica is not None and pin is None:
            self._replica.follow(self._take_up)

    def _bound(
        self, library: Library | None, pin: int | None, *, frozen: bool
    ) -> tuple[Library, CodeBinding]:
        """The code of this process on the library that new runs are pinned to."""
        if self._store is None:
            if pin is not None:
                raise UsageError("a library version is held with a store; pass store= beside it")
            own = Library() if library is None else library
            bound = with_code(own, self._tools)
            absent = without_code(bound)
            return bound, CodeBinding(library_version=own.version, without_code=absent)
        if pin is not None:
            return pinned(self._store, pin, self._tools, frozen=frozen)
        found = bound_as_held(self._store, self._tools)
        return found or library_door.bind_code(self._store, self._tools, frozen=frozen)

    @property
    def current(self) -> Library:
        """The newest snapshot."""
        return self._current

    def for_run(self) -> Library:
        """The snapshot for a run that begins now.

        Raises:
            StoreUnavailableError: The replica behind it refuses runs for as long as it does not
                know whether its library is the newest.
        """
        if self._replica is not None:
            self._replica.check_staleness()
        return self._current

    def at(self, version: int) -> Library:
        """The snapshot of that version; the current one when there is no store to ask.

        Raises:
            StoreUnavailableError: That version is not held here, and the store is away. A
                conversation never goes on with another version than its own for that.
        """
        current = self._current
        if self._store is None or version == current.version:
            return current
        held = self._older.get(version)
        if held is None:
            held = self._with_code(self._store.load(version))
            self._older.put(held)
        return held

    def refresh(self) -> Library:
        """Take up the newest version, if there is one."""
        if self._pin is not None:
            return self._current
        if self._replica is not None:
            self._replica.refresh()
        elif self._store is not None:
            versions = self._store.versions()
            if versions and versions[-1] != self._current.version:
                self._take_up(self._store.load())
        return self._current

    def _take_up(self, base: Library) -> None:
        """Make another version the current one; with a replica that is its thread's work."""
        before = self._current
        if base.version != before.version:
            newest = self._with_code(base).continuing(before)
            if self._replica is not None:
                newest.caught_up()
            self._older.put(before)
            self._current = newest

    def _with_code(self, base: Library) -> Library:
        return self._shown(with_code(base, self._tools))

    def _shown(self, library: Library) -> Library:
        """The library without the tools that can not run here, where these are hidden."""
        if not self._hides_unbound:
            return library
        return library.without(tool.name for tool in library if not tool.is_bound)
