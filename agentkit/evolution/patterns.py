"""Recurring groups of calls that pass data to each other, and the order that calls need.

A pattern is a small graph: calls by tool and argument names, joined by flows of data. Its calls
need not be adjacent in the trajectories, and calls that may run in either order count as the same
pattern in either order.

Positions are bits of an integer here: a trajectory has tens of calls, and sets of them are looked
at many thousand times.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.evolution.trajectories import Flow, Source, Step, Trajectory, used_steps

IsReadOnly = Callable[[str], bool]
"""Whether the tool of that name is known to change nothing."""

_MAX_STEPS = 64  # only so many first calls of a trajectory are looked at
_MAX_GROUPS = 500  # groups of one size that are looked at in one trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Ordering:
    """The order that the calls of one trajectory need.

    A call comes after those whose results it uses. Calls that may change something keep their
    place among all others, since a read may see what they did.

    Attributes:
        after: For each position, every position that must come after it, directly or not.
        users: For each position, the set of positions that use its result.
        linked: For each position, the set of positions joined to it by a flow of data.
        opaque: For each position, the set of positions that its arguments were made from in a way
            that no path describes.
    """

    after: tuple[int, ...]
    users: tuple[int, ...]
    linked: tuple[int, ...]
    opaque: tuple[int, ...]

    def is_whole(self, group: int) -> bool:
        """Whether ``group`` can become one call.

        Nothing outside may have to come between its members, and every argument that is made from
        results of members has to be a flow, so that a program can make it.
        """
        reached = 0
        for member in bits(group):
            if self.opaque[member] & group:
                return False
            reached |= self.after[member]
        return not any(self.after[other] & group for other in bits(reached & ~group))


def ordering_of(trajectory: Trajectory, is_read_only: IsReadOnly) -> Ordering:
    """The order that the calls of ``trajectory`` need."""
    count = len(trajectory.steps)
    before, users, linked, opaque = ([0] * count for _ in range(4))
    seen, changing = 0, 0
    for position, step in enumerate(trajectory.steps):
        for source in step.sources.values():
            for used in used_steps(source):
                before[position] |= 1 << used
                users[used] |= 1 << position
                if isinstance(source, Flow):
                    linked[position] |= 1 << used
                    linked[used] |= 1 << position
                else:
                    opaque[position] |= 1 << used
        reads = is_read_only(step.tool)
        before[position] |= changing if reads else seen
        seen |= 1 << position
        changing |= 0 if reads else 1 << position
    return Ordering(
        after=_closure(before), users=tuple(users), linked=tuple(linked), opaque=tuple(opaque)
    )


def _closure(before: Sequence[int]) -> tuple[int, ...]:
    after = [0] * len(before)
    for position in range(len(before) - 1, -1, -1):
        reached = after[position] | 1 << position
        for earlier in bits(before[position]):
            after[earlier] |= reached
    return tuple(after)


def bits(group: int) -> Iterator[int]:
    """The members of a set, ascending.

    Example:
        >>> list(bits(0b1010))
        [1, 3]
    """
    while group:
        lowest = group & -group
        yield lowest.bit_length() - 1
        group ^= lowest


Link: TypeAlias = "Flow | None"
"""Where an argument comes from within a pattern; None for outside of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternStep:
    """One call of a pattern.

    Attributes:
        tool: Name of the tool.
        arguments: Names in alphabetical order, with the flow within the pattern that fills each.
    """

    tool: str
    arguments: tuple[tuple[str, Link], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """Calls joined by flows of data, in an order in which they can run.

    Two patterns are equal exactly when their graphs are: of all orders in which the calls can run,
    theirs gives the smallest text.
    """

    steps: tuple[PatternStep, ...]

    @property
    def key(self) -> str:
        """The pattern as text, for sorting."""
        return _key(self.steps)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Occurrence:
    """One place where a pattern was found.

    Attributes:
        trajectory: Index of the trajectory.
        positions: Position of each call of the pattern, in the pattern's order.
    """

    trajectory: int
    positions: tuple[int, ...]

    @property
    def group(self) -> int:
        """The positions as a set of bits."""
        return _group(self.positions)


_Named: TypeAlias = tuple[Pattern, tuple[int, ...]]


class Shape:
    """What trajectories with the same calls and flows have in common; worked out once for all.

    Args:
        trajectory: One of them.
        is_read_only: Whether a tool is known to change nothing.
    """

    def __init__(self, trajectory: Trajectory, is_read_only: IsReadOnly) -> None:
        self.ordering: Ordering = ordering_of(trajectory, is_read_only)
        self._is_read_only = is_read_only
        self._calls = [(step.tool, _links(step)) for step in trajectory.steps]

    def name(self, group: int, known: dict[Pattern, _Named]) -> _Named:
        """The pattern of a group of calls, and their positions in its order."""
        positions = tuple(bits(group))
        local = {position: at for at, position in enumerate(positions)}
        raw = Pattern(steps=tuple(_within(*self._calls[one], local) for one in positions))
        if raw not in known:
            orders = _orders(_needs(raw.steps, self._is_read_only))
            order = min(orders, key=lambda order: _key(_reordered(raw.steps, order)))
            known[raw] = (Pattern(steps=_reordered(raw.steps, order)), order)
        pattern, order = known[raw]
        return pattern, tuple(positions[at] for at in order)


_Found: TypeAlias = tuple[Shape, tuple[int, ...]]


class PatternSearch:
    """The patterns of a corpus, from small ones to large ones.

    Args:
        trajectories: Where to look.
        is_read_only: Whether a tool is known to change nothing.
    """

    def __init__(self, trajectories: Sequence[Trajectory], is_read_only: IsReadOnly) -> None:
        self._indexes: dict[Shape, list[int]] = {}
        self.orderings: list[Ordering] = []
        shapes: dict[Hashable, Shape] = {}
        for index, trajectory in enumerate(trajectories):
            key = tuple(
                (step.tool, tuple((name, _place(one)) for name, one in step.sources.items()))
                for step in trajectory.steps
            )
            if key not in shapes:
                shapes[key] = Shape(trajectory, is_read_only)
            self._indexes.setdefault(shapes[key], []).append(index)
            self.orderings.append(shapes[key].ordering)

    def frequent(self, *, min_support: int, max_calls: int) -> dict[Pattern, list[Occurrence]]:
        """Patterns of two calls or more that occur in enough trajectories, with every occurrence.

        Args:
            min_support: Trajectories that a pattern occurs in at least.
            max_calls: Most calls of a pattern.
        """
        found: dict[Pattern, list[Occurrence]] = {}
        for level in self._levels(min_support, max_calls):
            for pattern, places in level.items():
                whole = [(one, at) for one, at in places if one.ordering.is_whole(_group(at))]
                if self._support(whole) >= min_support:
                    found[pattern] = sorted(
                        Occurrence(trajectory=index, positions=at)
                        for shape, at in whole
                        for index in self._indexes[shape]
                    )
        return found

    def _levels(self, min_support: int, max_calls: int) -> Iterator[Mapping[Pattern, list[_Found]]]:
        """Patterns of two calls, of three, and so on; a pattern grows only while it is frequent."""
        known: dict[Pattern, _Named] = {}
        seeds: dict[Shape, list[int]] = {
            one: [1 << at for at in range(min(len(one.ordering.after), _MAX_STEPS))]
            for one in self._indexes
        }
        for _ in range(max_calls - 1):
            level: dict[Pattern, list[_Found]] = {}
            for shape, groups in seeds.items():
                for group in _grown(groups, shape.ordering):
                    pattern, positions = shape.name(group, known)
                    level.setdefault(pattern, []).append((shape, positions))
            level = {one: at for one, at in level.items() if self._support(at) >= min_support}
            if not level:
                return
            yield level
            seeds = {}
            for found in level.values():
                for shape, positions in found:
                    seeds.setdefault(shape, []).append(_group(positions))

    def _support(self, found: Iterable[_Found]) -> int:
        return sum(len(self._indexes[shape]) for shape in {shape for shape, _ in found})


def _group(positions: Iterable[int]) -> int:
    group = 0
    for position in positions:
        group |= 1 << position
    return group


def _grown(groups: Iterable[int], ordering: Ordering) -> list[int]:
    """Every group with one call more, joined to it by a flow; each once."""
    within = (1 << _MAX_STEPS) - 1
    found: dict[int, None] = {}
    for group in sorted(groups):
        joined = 0
        for member in bits(group):
            joined |= ordering.linked[member]
        for other in bits(joined & ~group & within):
            found[group | 1 << other] = None
            if len(found) == _MAX_GROUPS:
                return list(found)
    return list(found)


def _place(source: Source) -> Hashable:
    if isinstance(source, Flow):
        return (source.step, source.path, source.cast)
    return source.uses


def _links(step: Step) -> tuple[tuple[str, Link], ...]:
    return tuple(
        (name, source if isinstance(source, Flow) else None)
        for name, source in sorted(step.sources.items())
    )


def _within(
    tool: str, links: tuple[tuple[str, Link], ...], local: Mapping[int, int]
) -> PatternStep:
    """A call as a part of a group: flows from outside of it are none."""
    return PatternStep(tool=tool, arguments=tuple((name, _moved(k, local)) for name, k in links))


def _moved(link: Link, places: Mapping[int, int]) -> Link:
    if link is None or link.step not in places:
        return None
    return Flow(step=places[link.step], path=link.path, cast=link.cast)


def _needs(steps: Sequence[PatternStep], is_read_only: IsReadOnly) -> list[int]:
    """For each call the set of calls that must come before it."""
    needs, seen, changing = [], 0, 0
    for at, step in enumerate(steps):
        reads = is_read_only(step.tool)
        need = changing if reads else seen
        for _, link in step.arguments:
            if link is not None:
                need |= 1 << link.step
        needs.append(need)
        seen |= 1 << at
        changing |= 0 if reads else 1 << at
    return needs


def _orders(needs: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every order in which calls with these needs can run."""
    waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while waiting:
        order, done = waiting.pop()
        if len(order) == len(needs):
            yield order
        waiting += [
            ((*order, at), done | 1 << at)
            for at, need in enumerate(needs)
            if not done >> at & 1 and not need & ~done
        ]


def _reordered(steps: tuple[PatternStep, ...], order: Sequence[int]) -> tuple[PatternStep, ...]:
    new = {old: at for at, old in enumerate(order)}
    return tuple(_within(steps[old].tool, steps[old].arguments, new) for old in order)


def _key(steps: Iterable[PatternStep]) -> str:
    return repr(
        [
            [step.tool, [[n, k and [k.step, k.path, k.cast]] for n, k in step.arguments]]
            for step in steps
        ]
    )
