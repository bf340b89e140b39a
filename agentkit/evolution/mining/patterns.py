"""Recurring groups of calls that pass data to each other.

A pattern is a small graph: calls by tool and argument names, joined by flows of data. Its calls
need not be adjacent in the trajectories, and calls that may run in either order count as the same
pattern in either order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.evolution.mining.ordering import IsReadOnly, Ordering, bits, ordering_of
from agentkit.evolution.mining.trajectory import Flow, Source, Step, Trajectory

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
        positions: Position of each call of the pattern, in the pattern's order.
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
