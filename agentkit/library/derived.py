"""Values worked out from a library's tools, and carried from one snapshot to the next.

A snapshot never changes, so what was worked out about it stays true; and the next snapshot differs
in a few tools, so its value is the old one with a few changes. That is how an index over ten
thousand tools adds a new one in a millisecond.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Protocol, TypeVar

from agentkit.tools.tool import Tool

T = TypeVar("T")

_SMALL_CHANGE = 64
"""A change of so few tools is always handed on, however small the library is."""


class Snapshot(Protocol):
    """What a derived value may see of a library."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        ...

    @property
    def version(self) -> int:
        """The version that a store gave it; 0 when it is in no store."""
        ...


class Derived(Protocol[T]):
    """A kind of value that is worked out from the definitions of a library.

    It is hashable, and equal kinds share one value a snapshot. A value must depend on nothing but
    the definitions: not on the code that tools are bound to, nor on the library's version. It must
    not keep the library itself, or neither is ever freed.
    """

    def build(self, library: Snapshot) -> T:
        """The value for a library about which nothing is known yet."""
        ...

    def update(
        self, value: T, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> T:
        """The value for ``library``, from that of a snapshot before it.

        Args:
            value: The earlier value. Others still use it: it must stay as it is.
            library: The library as it is now.
            added: Tools that are new or have another definition now.
            removed: Names that this one lacks; the earlier one may have lacked some of them too.
        """
        ...

    def __hash__(self) -> int:
        """Equal kinds have equal hashes."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The difference between two snapshots.

    Attributes:
        added: Tools by name that are new, or have another definition.
        removed: Names that are gone.
    """

    added: Mapping[str, Tool] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.added) + len(self.removed)

    def then(self, later: Change) -> Change:
        """Both changes as one.

        Example:
            >>> one = Change(removed=frozenset({"a"}))
            >>> one.then(Change(removed=frozenset({"b"}))).removed == {"a", "b"}
            True
        """
        if not self:
            return later
        kept = {name: tool for name, tool in self.added.items() if name not in later.removed}
        return Change(
            added=kept | dict(later.added),
            removed=(self.removed | later.removed).difference(later.added),
        )


class DerivedValues:
    """The derived values of one snapshot: those that are known, and those that can be caught up.

    A value is worked out by the first thread that asks; others that ask meanwhile wait for it.
    """

    __slots__ = ("_known", "_pending", "_working")

    def __init__(self) -> None:
        self._known: dict[Derived[Any], Any] = {}
        self._pending: dict[Derived[Any], tuple[Any, Change]] = {}
        self._working = RLock()  # a kind may ask for another one

    def __contains__(self, kind: object) -> bool:
        return kind in self._known

    def get(self, kind: Derived[T], library: Snapshot) -> T:
        """The value of that kind for ``library``, whose values these are."""
        if kind not in self._known:
            with self._working:
                if kind not in self._known:
                    self._known[kind] = self._worked_out(kind, library)
                    self._pending.pop(kind, None)
        known: T = self._known[kind]
        return known

    def _worked_out(self, kind: Derived[T], library: Snapshot) -> T:
        pending = self._pending.get(kind)
        if pending is None:
            return kind.build(library)
        earlier: T = pending[0]
        change = pending[1]
        if not change:
            return earlier
        return kind.update(earlier, library, tuple(change.added.values()), change.removed)

    def after(self, change: Change, *, size: int) -> DerivedValues:
        """The values of a snapshot that differs by ``change`` and then has ``size`` tools.

        When nothing changed they are these very values. Nothing is worked out now. A value that
        has fallen behind by more than half of the library is dropped: recomputing it costs
        no more, and it seems unused.
        """
        if not change:
            return self
        values = DerivedValues()
        behind = self._pending.copy()  # before what is known: another thread may move one over now
        behind |= {kind: (value, Change()) for kind, value in self._known.copy().items()}
        for kind, (value, so_far) in behind.items():
            together = so_far.then(change)
            if len(together) <= max(_SMALL_CHANGE, size // 2):
                values._pending[kind] = (value, together)
        return values

    def catch_up(self, library: Snapshot) -> None:
        """Bring up to date now what earlier snapshots knew, so that nobody waits for it later."""
        for kind in tuple(self._pending):
            self.get(kind, library)

    def or_else(self, others: DerivedValues) -> DerivedValues:
        """These values, and for the kinds that are missing here those of ``others``."""
        values = DerivedValues()
        pending, known = self._pending.copy(), self._known.copy()
        ours = {*pending, *known}
        other_pending, other_known = others._pending.copy(), others._known.copy()
        values._pending = pending | {k: v for k, v in other_pending.items() if k not in ours}
        values._known = known | {k: v for k, v in other_known.items() if k not in ours}
        return values
