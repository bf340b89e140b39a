"""Which names a random program may read where it stands, so that no name is read too early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random

from agentkit.testing.random_programs.kinds import Kind

VARIABLES = (
    "total",
    "text",
    "found",
    "values",
    "index",
    "row",
    "flag",
    "table",
    "left",
    "acc",
    "best",
    "out",
    "größe",
    "x",
    "y1",
)
PARAMETERS = ("amount", "name", "data", "limit", "items", "options", "日付")
LOOP_NAMES = ("i", "item", "word", "entry", "position")
COMPREHENSION_NAMES = ("c", "k", "v", "each", "n", "part")
"""Apart from the others, because a comprehension may not reuse a name of the function."""


class Scope:
    """The names that surely hold a value, with the kind of each.

    Attributes:
        in_comprehension: Whether the place is inside a comprehension, where no second one may be.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds: dict[str, Kind] = {}
        self._inner: dict[str, Kind] = {}
        self.in_comprehension = False

    @property
    def assigned(self) -> Mapping[str, Kind]:
        """The parameters and variables that hold a value."""
        return self._kinds

    def visible(self, kind: Kind) -> list[str]:
        """Names of a kind; every name for ``any``."""
        names = self._kinds | self._inner
        return [name for name, found in names.items() if kind in {"any", found}]

    def assign(self, name: str, kind: Kind) -> None:
        """A value of ``kind`` was assigned; another kind than before makes it uncertain."""
        known = self._kinds.get(name, kind)
        self._kinds[name] = kind if known == kind else "any"

    def new_name(self) -> str:
        """A variable, which may be in use already; sometimes a parameter or loop variable."""
        used = list(self._kinds)
        return self._random.choice(used if used and self._random.random() < 0.15 else VARIABLES)

    def save(self) -> dict[str, Kind]:
        """What is assigned here."""
        return dict(self._kinds)

    def restore(self, saved: Mapping[str, Kind]) -> None:
        """Go back to what was assigned there; kinds that changed since are uncertain."""
        self._kinds = {
            name: kind if self._kinds.get(name, kind) == kind else "any"
            for name, kind in saved.items()
        }

    def join(self, branches: list[dict[str, Kind]]) -> None:
        """Only what every branch assigned is assigned after them."""
        first, *others = branches
        self._kinds = {
            name: kind if all(other[name] == kind for other in others) else "any"
            for name, kind in first.items()
            if all(name in other for other in others)
        }

    @contextmanager
    def comprehension(self, targets: Mapping[str, Kind]) -> Iterator[None]:
        """The targets of a comprehension are visible inside it."""
        self._inner = dict(targets)
        try:
            yield
        finally:
            self._inner = {}
