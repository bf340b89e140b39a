"""Recurring groups of calls that pass data to each other.

A pattern is a small graph: calls by tool and argument names, joined by flows of data. Its calls
need not be adjacent in the trajectories, and calls that may run in either order count as the same
pattern in either order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentkit.evolution.mining.ordering import IsReadOnly, Ordering, bits, ordering_of
from agentkit.evolution.mining.trajectory import Flow, Trajectory

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


@dataclass(frozen=True, kw_only=True, slots=True)
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
        group = 0
        for position in self.positions:
            group |= 1 << position
        return group


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


class PatternSearch:
    """Finds connected groups of calls and names the pattern of each.

    Args:
        is_read_only: Whether a tool is known to change nothing; such calls may change places.
    """

    def __init__(self, is_read_only: IsReadOnly) -> None:
        self._is_read_only = is_read_only
        self._known: dict[tuple[PatternStep, ...], tuple[Pattern, tuple[int, ...]]] = {}

    def ordering(self, trajectory: Trajectory) -> Ordering:
        """The order that the calls of ``trajectory`` need."""
        return ordering_of(trajectory, self._is_read_only)

    def name(self, trajectory: Trajectory, group: int) -> tuple[Pattern, tuple[int, ...]]:
        """The pattern of a group of calls, and the positions in the pattern's order."""
        positions = tuple(bits(group))
        steps = _raw_steps(trajectory, positions)
        known = self._known.get(steps)
        if known is None:
            order = _canonical_order(steps, self._is_read_only)
            known = self._known[steps] = (Pattern(steps=_reordered(steps, order)), order)
        pattern, order = known
        return pattern, tuple(positions[at] for at in order)

    def frequent(
        self, trajectories: Sequence[Trajectory], limits: SearchLimits
    ) -> dict[Pattern, list[Occurrence]]:
        """Patterns that occur in at least ``min_support`` trajectories, with all occurrences.

        Larger groups are grown from frequent smaller ones, one call at a time: a group can only
        be frequent when it holds a frequent one that is smaller by one call. Groups that can not
        become one call are grown from, but are no occurrences themselves.
        """
        orderings = [self.ordering(trajectory) for trajectory in trajectories]
        return {
            pattern: occurrences
            for level in self._levels(trajectories, orderings, limits)
            for pattern, found in level.items()
            if _support(occurrences := _whole(found, orderings)) >= limits.min_support
        }

    def matching(
        self, trajectory: Trajectory, patterns: Collection[Pattern]
    ) -> dict[Pattern, list[tuple[int, ...]]]:
        """Where some of ``patterns`` are in one trajectory: positions in the pattern's order."""
        wanted = {_tools(pattern.steps) for pattern in patterns}
        ordering = self.ordering(trajectory)
        largest = max((len(pattern.steps) for pattern in patterns), default=0)
        found: dict[Pattern, list[tuple[int, ...]]] = {}
        groups = [1 << position for position in range(len(trajectory.steps))]
        limits = SearchLimits(max_steps=len(trajectory.steps), max_groups=10_000)
        for _ in range(largest - 1):
            groups = [
                group
                for group in _grown(groups, ordering, limits)
                if _is_part(trajectory, group, wanted)
            ]
            for group in groups:
                pattern, positions = self.name(trajectory, group)
                if pattern in patterns and ordering.is_whole(group):
                    found.setdefault(pattern, []).append(positions)
        return found

    def _levels(
        self,
        trajectories: Sequence[Trajectory],
        orderings: Sequence[Ordering],
        limits: SearchLimits,
    ) -> Iterator[dict[Pattern, list[Occurrence]]]:
        seeds: dict[int, list[int]] = {
            index: [1 << position for position in range(min(len(one.steps), limits.max_steps))]
            for index, one in enumerate(trajectories)
        }
        for _ in range(limits.max_calls - 1):
            level: dict[Pattern, list[Occurrence]] = {}
            for index, groups in seeds.items():
                for group in _grown(groups, orderings[index], limits):
                    pattern, positions = self.name(trajectories[index], group)
                    found = Occurrence(trajectory=index, positions=positions)
                    level.setdefault(pattern, []).append(found)
            level = {
                p: found for p, found in level.items() if _support(found) >= limits.min_support
            }
            if not level:
                return
            yield level
            seeds = {}
            for occurrences in level.values():
                for occurrence in occurrences:
                    seeds.setdefault(occurrence.trajectory, []).append(occurrence.group)


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


def _whole(found: Iterable[Occurrence], orderings: Sequence[Ordering]) -> list[Occurrence]:
    return [one for one in found if orderings[one.trajectory].is_whole(one.group)]


def _support(found: Iterable[Occurrence]) -> int:
    return len({occurrence.trajectory for occurrence in found})


def _raw_steps(trajectory: Trajectory, positions: Sequence[int]) -> tuple[PatternStep, ...]:
    local = {position: at for at, position in enumerate(positions)}
    return tuple(_raw_step(trajectory, position, local) for position in positions)


def _raw_step(trajectory: Trajectory, position: int, local: Mapping[int, int]) -> PatternStep:
    step = trajectory.steps[position]
    links = {
        name: replace(source, step=local[source.step])
        if isinstance(source, Flow) and source.step in local
        else None
        for name, source in sorted(step.sources.items())
    }
    return PatternStep(tool=step.tool, arguments=tuple(links.items()))


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
    return json.dumps([step.tool, links])


def _refined(
    at: int, steps: Sequence[PatternStep], needs: Sequence[int], colours: Sequence[str]
) -> str:
    into = [
        (name, colours[link.step], link.path)
        for name, link in steps[at].arguments
        if link is not None
    ]
    out = sorted(
        json.dumps([name, colours[other], link.path])
        for other, step in enumerate(steps)
        for name, link in step.arguments
        if link is not None and link.step == at
    )
    first = sorted(colours[other] for other in bits(needs[at]))
    then = sorted(colours[other] for other, need in enumerate(needs) if need >> at & 1)
    return json.dumps([colours[at], into, out, first, then])


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
                (name, None if link is None else replace(link, step=new[link.step]))
                for name, link in steps[old].arguments
            ),
        )
        for old in order
    )


def _key(steps: Iterable[PatternStep]) -> str:
    return json.dumps(
        [
            [step.tool, [[n, k and [k.step, k.path, k.cast]] for n, k in step.arguments]]
            for step in steps
        ]
    )
