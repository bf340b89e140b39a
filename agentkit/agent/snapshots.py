"""Which library snapshot a run is pinned to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from agentkit.library.library import Library
from agentkit.library.linking import link
from agentkit.library.recorded_names import RecordedNames
from agentkit.library.store import ToolStore
from agentkit.tools.tool import Tool


class Snapshots:
    """The current snapshot, and older ones for conversations that began on them.

    Args:
        store: Where versions come from; None when the tools live in code only.
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
        base = library or (self._store.load() if self._store else Library())
        self._current = self._with_code(base)
        self._older: dict[int, Library] = {}

    @property
    def current(self) -> Library:
        """The snapshot for runs that start now."""
        return self._current

    def at(self, version: int) -> Library:
        """The snapshot of that version; the current one when there is no store to ask."""
        if self._store is None or version == self._current.version:
            return self._current
        if version not in self._older:
            self._older[version] = self._with_code(self._store.load(version))
        return self._older[version]

    def refresh(self) -> Library:
        """Take up the newest version, if there is one."""
        if self._store is not None:
            versions = self._store.versions()
            if versions and versions[-1] != self._current.version:
                self._older[self._current.version] = self._current
                newest = self._with_code(self._store.load())
                self._current = newest.continuing(self._current)
        return self._current

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
