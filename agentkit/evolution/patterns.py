"""Recurring groups of calls that pass data to each other, and the order that calls need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.evolution.trajectories import Flow, Source, Step, Trajectory, used_steps

# --- Which calls of a trajectory must stay in order, and which groups of them can become one  ----
# Which calls of a trajectory must stay in order, and which groups of them can become one call.
#
# Positions are bits of an integer here: a trajectory has tens of calls, and sets of them are
# looked
# at many thousand times.


IsReadOnly = Callable[[str], bool]
"""Whether the tool of that name is known to change nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ordering:
    """The order that the calls of one trajectory need.

    A call comes after those whose results it uses. Calls that may change something keep their
    place among all others, since a read may see what they did.

    Attributes:
        before: For each position, the set of positions that must come before it.
        after: For each position, every position that must come after it, directly or not.
        users: For each position, the set of positions that use its result.
        linked: For each position, the set of positions joined to it by a flow of data.
        opaque: For each position, the set of positions that its arguments were made from in a way
            that no path describes.
    """

    before: tuple[int, ...]
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


@dataclass(kw_only=True, slots=True)
class Grouping:
    """Disjoint groups of one trajectory's calls that can all become one call each.

    Attributes:
        ordering: The order that the calls need.
        groups: The groups so far.
        taken: Their members together.
    """

    ordering: Ordering
    groups: list[int] = field(default_factory=list)
    taken: int = 0

    def add(self, group: int) -> bool:
        """Add ``group`` when it is disjoint from the others and no circle of calls results."""
        if self.taken & group or not self.ordering.is_whole(group):
            return False
        groups = [*self.groups, group]
        if self.groups and arrange(self.ordering, groups) is None:
            return False
        self.groups, self.taken = groups, self.taken | group
        return True


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
        before=tuple(before),
        after=_closure(before),
        users=tuple(users),
        linked=tuple(linked),
        opaque=tuple(opaque),
    )


def _closure(before: Sequence[int]) -> tuple[int, ...]:
    after = [0] * len(before)
    for position in range(len(before) - 1, -1, -1):
        reached = after[position] | 1 << position
        for earlier in bits(before[position]):
            after[earlier] |= reached
    return tuple(after)


def arrange(ordering: Ordering, groups: Sequence[int]) -> list[int] | None:
    """An order in which ``groups`` and the calls outside them can run, each group in one go.

    Returns:
        Groups and single calls as sets, each as early as its place in the trajectory allows; None
        when there is no such order.
    """
    grouped = 0
    for group in groups:
        grouped |= group
    singles = (1 << position for position in range(len(ordering.before)))
    waiting = sorted([*groups, *(one for one in singles if not one & grouped)])
    waiting.sort(key=int.bit_length)  # where its last member stands
    needs = [_needed(ordering, unit) for unit in waiting]
    done, order = 0, []
    while waiting:
        ready = next((at for at, need in enumerate(needs) if not need & ~done), None)
        if ready is None:
            return None
        order.append(waiting[ready])
        done |= waiting[ready]
        del waiting[ready], needs[ready]
    return order


def _needed(ordering: Ordering, unit: int) -> int:
    needed = 0
    for member in bits(unit):
        needed |= ordering.before[member]
    return needed & ~unit


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


# --- Recurring groups of calls that pass data to each other --------------------------------------
# A pattern is a small graph: calls by tool and argument names, joined by flows of data. Its calls
# need not be adjacent in the trajectories, and calls that may run in either order count as the
# same
# pattern in either order.


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

    Two patterns are equal exactly when their graphs are: the order of the calls is a canonical
    one.
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
        positions: LibraryState of each call of the pattern, in the pattern's order.
    """

    trajectory: int
    positions: tuple[int, ...]

    @property
    def group(self) -> int:
        """The positions as a set of bits."""
        return _group(self.positions)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLimits:
    """How far the search for patterns goes.

    The work grows with the number of groups looked at, which these bound: at most
    ``max_groups`` for each trajectory and each size up to ``max_calls``.

    Attributes:
        min_support: A pattern occurs in at least so many trajectories.
        max_calls: Most calls of a pattern.
        max_steps: Only so many first calls of a trajectory are looked at.
        max_groups: Most groups of one size that are looked at in one trajectory; of more, those
            found first are kept.
    """

    min_support: int = 3
    max_calls: int = 6
    max_steps: int = 64
    max_groups: int = 500


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
        self._named: dict[int, tuple[Pattern, tuple[int, ...]]] = {}

    def name(
        self, group: int, known: dict[Pattern, tuple[Pattern, tuple[int, ...]]]
    ) -> tuple[Pattern, tuple[int, ...]]:
        """The pattern of a group of calls, and the positions in the pattern's order.

        Args:
            group: The calls.
            known: For patterns whose calls are in the order of a trajectory, the canonical
                pattern and order; new ones are added.
        """
        found = self._named.get(group)
        if found is None:
            positions = tuple(bits(group))
            raw = Pattern(steps=self._steps(positions))
            if raw not in known:
                order = _canonical_order(raw.steps, self._is_read_only)
                known[raw] = Pattern(steps=_reordered(raw.steps, order)), order
            pattern, order = known[raw]
            found = self._named[group] = pattern, tuple(positions[at] for at in order)
        return found

    def _steps(self, positions: Sequence[int]) -> tuple[PatternStep, ...]:
        local = {position: at for at, position in enumerate(positions)}
        return tuple(_within(*self._calls[position], local) for position in positions)


class PatternSearch:
    """Finds connected groups of calls and names the pattern of each.

    Args:
        is_read_only: Whether a tool is known to change nothing; such calls may change places.
    """

    def __init__(self, is_read_only: IsReadOnly) -> None:
        self._is_read_only = is_read_only
        self._shapes: dict[Hashable, Shape] = {}
        self._known: dict[Pattern, tuple[Pattern, tuple[int, ...]]] = {}

    def shape(self, trajectory: Trajectory) -> Shape:
        """What ``trajectory`` has in common with those of the same calls and flows."""
        key = tuple(
            (step.tool, tuple((n, _place(source)) for n, source in step.sources.items()))
            for step in trajectory.steps
        )
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = Shape(trajectory, self._is_read_only)
        return found

    def ordering(self, trajectory: Trajectory) -> Ordering:
        """The order that the calls of ``trajectory`` need."""
        return self.shape(trajectory).ordering

    def frequent(
        self, trajectories: Sequence[Trajectory], limits: SearchLimits
    ) -> dict[Pattern, list[Occurrence]]:
        """Patterns that occur in at least ``min_support`` trajectories, with all occurrences.

        Larger groups are grown from frequent smaller ones, one call at a time: a group can only
        be frequent when it holds a frequent one that is smaller by one call. Groups that can not
        become one call are grown from, but are no occurrences themselves.
        """
        groups: dict[Shape, list[int]] = {}
        for index, trajectory in enumerate(trajectories):
            groups.setdefault(self.shape(trajectory), []).append(index)
        found: dict[Pattern, list[Occurrence]] = {}
        for level in self._levels(groups, limits):
            for pattern, places in level.items():
                whole = [(one, at) for one, at in places if one.ordering.is_whole(_group(at))]
                if _support(whole, groups) >= limits.min_support:
                    found[pattern] = sorted(
                        Occurrence(trajectory=index, positions=at)
                        for shape, at in whole
                        for index in groups[shape]
                    )
        return found

    def matching(
        self, trajectory: Trajectory, patterns: Collection[Pattern]
    ) -> dict[Pattern, list[tuple[int, ...]]]:
        """Where some of ``patterns`` are in one trajectory: positions in the pattern's order."""
        wanted = {_tools(pattern.steps) for pattern in patterns}
        shape = self.shape(trajectory)
        largest = max((len(pattern.steps) for pattern in patterns), default=0)
        found: dict[Pattern, list[tuple[int, ...]]] = {}
        groups = [1 << position for position in range(len(trajectory.steps))]
        limits = SearchLimits(max_steps=len(trajectory.steps), max_groups=10_000)
        for _ in range(largest - 1):
            groups = [
                group
                for group in _grown(groups, shape.ordering, limits)
                if _is_part(trajectory, group, wanted)
            ]
            for group in groups:
                pattern, positions = shape.name(group, self._known)
                if pattern in patterns and shape.ordering.is_whole(group):
                    found.setdefault(pattern, []).append(positions)
        return found

    def _levels(
        self, shapes: Mapping[Shape, Sequence[int]], limits: SearchLimits
    ) -> Iterator[dict[Pattern, list[_Found]]]:
        """Groups of two calls, of three, and so on, by pattern; those that are frequent."""
        seeds: dict[Shape, list[int]] = {
            one: [1 << at for at in range(min(len(one.ordering.before), limits.max_steps))]
            for one in shapes
        }
        for _ in range(limits.max_calls - 1):
            level: dict[Pattern, list[_Found]] = {}
            for shape, groups in seeds.items():
                for group in _grown(groups, shape.ordering, limits):
                    pattern, positions = shape.name(group, self._known)
                    level.setdefault(pattern, []).append((shape, positions))
            level = {
                pattern: found
                for pattern, found in level.items()
                if _support(found, shapes) >= limits.min_support
            }
            if not level:
                return
            yield level
            seeds = {}
            for found in level.values():
                for shape, positions in found:
                    seeds.setdefault(shape, []).append(_group(positions))


_Found: TypeAlias = tuple[Shape, tuple[int, ...]]


def _support(found: Iterable[_Found], shapes: Mapping[Shape, Sequence[int]]) -> int:
    """In how many trajectories the groups are."""
    return sum(len(shapes[shape]) for shape in {shape for shape, _ in found})


def _group(positions: Iterable[int]) -> int:
    group = 0
    for position in positions:
        group |= 1 << position
    return group


def _grown(groups: Iterable[int], ordering: Ordering, limits: SearchLimits) -> list[int]:
    """Each group with one more call that a flow of data joins to it; every set once."""
    within = (1 << limits.max_steps) - 1
    found: dict[int, None] = {}
    for group in sorted(groups):
        joined = 0
        for member in bits(group):
            joined |= ordering.linked[member]
        for other in bits(joined & ~group & within):
            found[group | 1 << other] = None
            if len(found) == limits.max_groups:
                return list(found)
    return list(found)


def _tools(steps: Iterable[PatternStep]) -> frozenset[tuple[str, int]]:
    """How often each tool is called."""
    return frozenset(Counter(step.tool for step in steps).items())


def _is_part(
    trajectory: Trajectory, group: int, wanted: Iterable[frozenset[tuple[str, int]]]
) -> bool:
    """Whether a pattern that calls the tools so often could still grow from ``group``."""
    counts = Counter(trajectory.steps[position].tool for position in bits(group))
    return any(
        all(dict(most).get(tool, 0) >= count for tool, count in counts.items()) for most in wanted
    )


def _place(source: Source) -> Hashable:
    """Where an argument comes from, whatever its value is."""
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
    """A call as part of a group: flows from outside of the group are none."""
    inside = tuple(
        (name, None if link is None or link.step not in local else _moved(link, local[link.step]))
        for name, link in links
    )
    return PatternStep(tool=tool, arguments=inside)


def _moved(link: Flow, step: int) -> Flow:
    return Flow(step=step, path=link.path, cast=link.cast)


# --- canonical order ------------------------------------------------------------------------------


def _canonical_order(steps: tuple[PatternStep, ...], is_read_only: IsReadOnly) -> tuple[int, ...]:
    """The order, among those in which the calls can run, whose text comes first."""
    needs = _needs(steps, is_read_only)
    colours = _colours(steps, needs)
    orders = _orders(steps, needs, colours)
    return min(orders, key=lambda order: _key(_reordered(steps, order)))


def _needs(steps: Sequence[PatternStep], is_read_only: IsReadOnly) -> list[int]:
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


def _colours(steps: Sequence[PatternStep], needs: Sequence[int]) -> list[str]:
    """A text for each call that tells it from calls in another place of the graph."""
    colours = [_local(step) for step in steps]
    for _ in steps:
        colours = [_refined(at, steps, needs, colours) for at in range(len(steps))]
        shorter = {text: f"{rank:02}" for rank, text in enumerate(sorted(set(colours)))}
        colours = [shorter[text] for text in colours]
    return colours


def _local(step: PatternStep) -> str:
    links = [(name, link and (link.path, link.cast)) for name, link in step.arguments]
    return repr([step.tool, links])


def _refined(
    at: int, steps: Sequence[PatternStep], needs: Sequence[int], colours: Sequence[str]
) -> str:
    into = [
        (name, colours[link.step], link.path)
        for name, link in steps[at].arguments
        if link is not None
    ]
    out = sorted(
        repr([name, colours[other], link.path])
        for other, step in enumerate(steps)
        for name, link in step.arguments
        if link is not None and link.step == at
    )
    first = sorted(colours[other] for other in bits(needs[at]))
    then = sorted(colours[other] for other, need in enumerate(needs) if need >> at & 1)
    return repr([colours[at], into, out, first, then])


def _orders(
    steps: Sequence[PatternStep], needs: Sequence[int], colours: Sequence[str]
) -> Iterator[tuple[int, ...]]:
    """Orders that always take the smallest colour next; one for each way to break a tie."""
    waiting: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while waiting:
        order, done = waiting.pop()
        if len(order) == len(steps):
            yield order
            continue
        free = [at for at in range(len(steps)) if not done >> at & 1 and not needs[at] & ~done]
        first = min(colours[at] for at in free)
        waiting += [((*order, at), done | 1 << at) for at in free if colours[at] == first]


def _reordered(steps: tuple[PatternStep, ...], order: Sequence[int]) -> tuple[PatternStep, ...]:
    new = {old: at for at, old in enumerate(order)}
    return tuple(
        PatternStep(
            tool=steps[old].tool,
            arguments=tuple(
                (name, None if link is None else _moved(link, new[link.step]))
                for name, link in steps[old].arguments
            ),
        )
        for old in order
    )


def _key(steps: Iterable[PatternStep]) -> str:
    return repr(
        [
            [step.tool, [[n, k and [k.step, k.path, k.cast]] for n, k in step.arguments]]
            for step in steps
        ]
    )
