"""``RecentVersions``: snapshots of a few older versions, for conversations that began on them."""

from __future__ import annotations

from agentkit.library.library import Library

MOST_VERSIONS = 16
"""How many older versions are held. Any other is read from the store again when it is needed."""


class RecentVersions:
    """The older snapshots that were used last; the one unused for longest goes first.

    Threads may share one. There is no lock, which a fork could find held for ever: each step on
    the dict is whole, and a snapshot that two steps lose is read from the store again.

    Args:
        most: How many are held.

    Example:
        >>> held = RecentVersions(most=2)
        >>> for version in (1, 2, 1, 3):
        ...     held.put(Library(version=version))
        >>> held.versions, held.get(2)
        ((1, 3), None)
    """

    def __init__(self, *, most: int = MOST_VERSIONS) -> None:
        self._most = most
        self._held: dict[int, Library] = {}  # the one used last stands last

    @property
    def versions(self) -> tuple[int, ...]:
        """Which versions are held, ascending."""
        return tuple(sorted(self._held))

    def get(self, version: int) -> Library | None:
        """The snapshot of that version if it is held; it then counts as used."""
        library = self._held.pop(version, None)
        if library is not None:
            self._held[version] = library
        return library

    def put(self, library: Library) -> None:
        """Hold a snapshot."""
        self._held.pop(library.version, None)
        self._held[library.version] = library
        held = list(self._held)
        for unused in held[: max(0, len(held) - self._most)]:
            self._held.pop(unused, None)
