"""``NewestLibrary``: loading versions where a store can tell what differs between two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.library.changes import no_such_version
from agentkit.library.derived import DerivedCache
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    """What a later version has otherwise than an earlier one.

    Attributes:
        gone: Names that leave their place: tools that were removed, and those that were removed and
            came again, which stand behind the others.
        tools: Definitions that are new or changed, in the order of the library.
    """

    gone: Sequence[str]
    tools: Sequence[ToolDefinition]


ReadDifferences: TypeAlias = Callable[[Library, int], Differences]
"""From an earlier snapshot, which may be empty, to a later version."""


class NewestLibrary:
    """Keeps the newest snapshot of a store, and reads from there on only what changed.

    Args:
        cache: Where derived values may be kept beyond this process.
    """

    def __init__(self, *, cache: DerivedCache | None = None) -> None:
        self._cache = cache
        self._kept = Library(cache=cache)

    def load(self, version: int | None, *, newest: int, read: ReadDifferences) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        Args:
            version: The wanted one; None for the newest.
            newest: The newest version that the store has now; 0 for none.
            read: Asks the store what differs.
        """
        wanted = newest if version is None else version
        if not 0 <= wanted <= newest:
            raise no_such_version(wanted, range(1, newest + 1))
        known = self._kept
        if wanted == known.version:
            return known
        base = known if 0 < known.version < wanted else Library(cache=self._cache)
        library = self._after(base, read(base, wanted), wanted)
        if wanted == newest:
            self._kept = library
        return library

    def _after(self, base: Library, found: Differences, version: int) -> Library:
        if not len(base):
            return Library(found.tools, version=version, cache=self._cache)
        rest = base.without(found.gone) if found.gone else base
        return rest.with_tools(found.tools).at_version(version)
