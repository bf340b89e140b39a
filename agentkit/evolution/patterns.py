"""Groups of calls that recur in trajectories, joined by flows of data.

A pattern is a small graph: calls by tool and argument names, joined by flows. Its calls need not be
adjacent, and calls that may run in either order count as the same pattern in either order.

Positions are bits of an integer here: a trajectory has tens of calls, and sets of them are looked
at many thousand times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.evolution.trajectories import Flow, Trajectory, used_steps

IsReadOnly: TypeAlias = Callable[[str], bool]
"""Whether the tool of that name is known to change nothing."""

_MAX_STEPS = 64  # only so many first calls of a trajectory are looked at
_MAX_GROUPS = 500  # groups of one size that are looked at in one trajectory


# --- The order that calls need --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOrder:
    """What the calls of one trajectory need of each other; a set of positions for each call.

    Attributes:
        before: The calls that must come before it, directly or not.
        users: The calls that use its result.
        linked: The calls joined to it by a flow of data.
        opaque: The calls that its arguments were made from in a way that no path describes.
    """

    before: tuple[int, ...]
    users: tuple[int, ...]
    linked: tuple[int, ...]
    opaque: tuple[int, ...]

    @classmethod
    def of(cls, trajectory: Trajectory, is_read_only: IsReadOnly) -> CallOrder:
        """The order that the calls of a trajectory need."""
        users, linked, opaque = ([0] * len(trajectory.steps) for _ in range(3))
        needed: list[tuple[str, list[int]]] = []
        for position, step in enumerate(trajectory.steps):
            uses: list[int] = []
            for source in step.sources.values():
                for used in used_steps(source):
                    uses.append(used)
                    users[used] |= 1 << position
                    if isinstance(source, Flow):
                        linked[position] |= 1 << used
                        linked[used] |= 1 << position
                    else:
                        opaque[position] |= 1 << used
            needed.append((step.tool, uses))
        before = _before(needed, is_read_only)
        return cls(before=before, users=tuple(users), linked=tuple(linked), opaque=tuple(opaque))

    def is_whole(self, group: int) -> bool:
        """Whether a group of calls can become one call.

        Nothing outside may have to come between its members, and every argument that is made from
        results of members has to be a flow, so that a program can make it.
        """
        outside = 0
        for member in bits(group):
            if self.opaque[member] & group:
                return False
            outside |= self.before[member] & ~group
        return not any(self.before[other] & group for other in bits(outside))


def _before(
    calls: Iterable[tuple[str, Iterable[int]]], is_read_only: IsReadOnly
) -> tuple[int, ...]:
    """For each call all that must come before it: those whose results it uses, and more.

    A call that may change something keeps its place among all others, since a read may see what it
    did.
    """
    found: list[int] = []
    changing = 0
    for at, (tool, uses) in enumerate(calls):
        direct = changing if is_read_only(tool) else (1 << at) - 1
        direct |= group_of(uses)
        reached = direct
        for earlier in bits(direct):
            reached |= found[earlier]
        found.append(reached)
        if not is_read_only(tool):
            changing |= 1 << at
    return tuple(found)


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


def group_of(positions: Iterable[int]) -> int:
    """Positions as a set of bits."""
    group = 0
    for position in positions:
        group |= 1 << position
    return group


# --- Patterns -------------------------------------------------------------------------------------

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

    @property
    def sources(self) -> list[int]:
        """The calls of the pattern whose results it uses."""
        return [link.step for _, link in self.arguments if link is not None]

    def placed(self, places: Mapping[int, int]) -> PatternStep:
        """The same with its sources at other places; those that have none are outside."""
        arguments = tuple(
            (name, Flow(step=places[link.step], path=link.path, cast=link.cast))
            if link is not None and link.step in places
            else (name, None)
            for name, link in self.arguments
        )
        return PatternStep(tool=self.tool, arguments=arguments)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """Calls joined by flows of data, in an order in which they can run.

    Attributes:
        steps: The calls.
    """

    steps: tuple[PatternStep, ...]

    @property
    def key(self) -> str:
        """The pattern as text, for sorting."""
        return repr(
            [
                (step.tool, [(n, k and (k.step, k.path, k.cast)) for n, k in step.arguments])
                for step in self.steps
            ]
        )

    @property
    def feeds(self) -> tuple[tuple[str, ...], ...]:
        """For each call the names of the arguments that its result fills."""
        return tuple(
            tuple(
                name
                for step in self.steps
                for name, link in step.arguments
                if link is not None and link.step == at
            )
            for at in range(len(self.steps))
        )


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
        return group_of(self.positions)


def support_of(occurrences: Iterable[Occurrence]) -> int:
    """In how many trajectories something occurs."""
    return len({one.trajectory for one in occurrences})


class PatternSearch:
    """Finds the patterns of a corpus; a pattern grows by a call only while it is frequent.

    Args:
        trajectories: The corpus.
        is_read_only: Whether a tool is known to change nothing.
    """

    def __init__(self, trajectories: Sequence[Trajectory], is_read_only: IsReadOnly) -> None:
        self.orders = [CallOrder.of(one, is_read_only) for one in trajectories]
        self._calls = [
            [
                PatternStep(
                    tool=step.tool,
                    arguments=tuple(
                        (name, source if isinstance(source, Flow) else None)
                        for name, source in sorted(step.sources.items())
                    ),
                )
                for step in one.steps
            ]
            for one in trajectories
        ]
        self._is_read_only = is_read_only
        self._known: dict[tuple[PatternStep, ...], tuple[Pattern, tuple[int, ...]]] = {}

    def frequent(self, *, min_support: int, max_calls: int) -> dict[Pattern, list[Occurrence]]:
        """Patterns of two calls or more that occur in enough trajectories, with every occurrence.

        Args:
            min_support: Trajectories that a pattern occurs in at least.
            max_calls: Most calls of a pattern.
        """
        found: dict[Pattern, list[Occurrence]] = {}
        groups = [[1 << at for at in range(min(len(one), _MAX_STEPS))] for one in self._calls]
        for _ in range(max_calls - 1):
            level: dict[Pattern, list[Occurrence]] = {}
            for index, smaller in enumerate(groups):
                for group in _grown(smaller, self.orders[index]):
                    pattern, positions = self._named(index, group)
                    occurrence = Occurrence(trajectory=index, positions=positions)
                    level.setdefault(pattern, []).append(occurrence)
            groups = [[] for _ in self._calls]
            for pattern, places in level.items():
                if support_of(places) < min_support:
                    continue
                for one in places:
                    groups[one.trajectory].append(one.group)
                whole = [one for one in places if self.orders[one.trajectory].is_whole(one.group)]
                if support_of(whole) >= min_support:
                    found[pattern] = sorted(whole)
        return found

    def _named(self, index: int, group: int) -> tuple[Pattern, tuple[int, ...]]:
        """The pattern of a group of calls, and their positions in its order."""
        positions = tuple(bits(group))
        local = {position: at for at, position in enumerate(positions)}
        raw = tuple(self._calls[index][one].placed(local) for one in positions)
        if raw not in self._known:
            order = _ordered(Pattern(steps=raw), self._is_read_only)
            places = {old: new for new, old in enumerate(order)}
            steps = tuple(raw[old].placed(places) for old in order)
            self._known[raw] = Pattern(steps=steps), order
        pattern, order = self._known[raw]
        return pattern, tuple(positions[at] for at in order)


def _grown(groups: Iterable[int], order: CallOrder) -> list[int]:
    """Every group with one call more, joined to it by a flow; each once."""
    within = (1 << _MAX_STEPS) - 1
    found: dict[int, None] = {}
    for group in sorted(groups):
        joined = 0
        for member in bits(group):
            joined |= order.linked[member]
        for other in bits(joined & ~group & within):
            found[group | 1 << other] = None
            if len(found) == _MAX_GROUPS:
                return list(found)
    return list(found)


def _ordered(raw: Pattern, is_read_only: IsReadOnly) -> tuple[int, ...]:
    """An order in which calls can run, chosen by what they are and not by when they were made.

    Of the calls that can come next, the first by name, arguments and what its result is used for.
    """
    steps, feeds = raw.steps, raw.feeds
    before = _before([(step.tool, step.sources) for step in steps], is_read_only)
    places: dict[int, int] = {}

    def label(at: int) -> tuple[str, tuple[str, ...], int]:
        return Pattern(steps=(steps[at].placed(places),)).key, tuple(sorted(feeds[at])), at

    while len(places) < len(steps):
        done = group_of(places)
        ready = [at for at in range(len(steps)) if at not in places and not before[at] & ~done]
        places[min(ready, key=label)] = len(places)
    return tuple(places)
