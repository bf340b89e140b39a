"""Which library snapshot a run is pinned to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from agentkit.library.abilities import SelfRefreshing
from agentkit.library.library import Library
from agentkit.library.linking import link
from agentkit.library.recent_versions import RecentVersions
from agentkit.library.recorded_names import RecordedNames
from agentkit.library.store import ToolStore
from agentkit.tools.tool import Tool


class Snapshots:
    """The current snapshot, and older ones for conversations that began on them.

    Of the older ones the ``MOST_VERSIONS`` that were used last are held; others are read from the
    store again.

    Args:
        store: Where versions come from; None when the tools live in code only. One that refreshes
            itself, a ``Replica``, hands over each new version when it is there; of others
            ``refresh`` takes them up.
        library: A snapshot to use instead of the store's; it then never changes.
        tools: Tools in code. They give their code to stored definitions of the same name, or to
            those that came from the same place and were stored under another name, so that evolved
            words reach the model while the program stays as it is.
    """

    def __init__(
        self, *, store: ToolStore | None, library: Library | None, tools: Sequence[Tool]
    ) -> None:
        self._store = store if library is None else None
        self._tools = tuple(tools)
        base = Library() if library is None else library
        if self._store is not None:
            base = self._store.load()
        self._current = self._with_code(base)
        self._older = RecentVersions()
        source: object = self._store
        self._replica = source if isinstance(source, SelfRefreshing) else None
        if self._replica is not None:
            self._replica.follow(self._take_up)

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
        if not self._tools:
            return base
        names = RecordedNames(base.tools)
        library = base.with_tools(_bound(tool, base, names) for tool in self._tools)
        return link(library) if len(base) else library


def _bound(tool: Tool, base: Library, names: RecordedNames) -> Tool:
    stored = base.get(names.of(tool.definition))
    if stored is None:
        return tool
    if stored.definition.signature.parameters == tool.definition.signature.parameters:
        return tool.with_definition(stored.definition)
    warnings.warn(
        f"the parameters of {tool.name!r} in code differ from those in library version "
        f"{base.version}; the definition in code is used. Commit it to the store "
        "(agentkit tools add) to evolve it again.",
        stacklevel=2,
    )
    return tool
