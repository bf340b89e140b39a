"""Which calls of a trajectory must stay in order, and which groups of them can become one call.

Positions are bits of an integer here: a trajectory has tens of calls, and sets of them are looked
at many thousand times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agentkit.evolution.mining.trajectory import Flow, Trajectory, used_steps

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
