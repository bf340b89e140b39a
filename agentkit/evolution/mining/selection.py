"""Which patterns are worth a tool: those that make the calls of all episodes shortest.

A greedy form of the minimum description length principle: the corpus costs one unit a call, a
new tool costs one unit for each call of its program and one for its name. The pattern that saves
most is taken, its occurrences are taken out, and so on until nothing saves.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentkit.composites import language as ir
from agentkit.composites.codec import program_from_json, program_to_json
from agentkit.errors import CompositeError
from agentkit.evolution.mining.lifting import (
    Lifting,
    LiftingRules,
    lift,
    live_results,
    returned_calls,
)
from agentkit.evolution.mining.ordering import Grouping, Ordering
from agentkit.evolution.mining.patterns import Occurrence, Pattern
from agentkit.evolution.mining.rewriting import misfit
from agentkit.evolution.mining.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A pattern that is worth a tool.

    Attributes:
        lifting: Its program.
        occurrences: Every place where the program could stand.
        placed: Those that are left when the choices before it have taken theirs.
        gain: Units saved: calls of all episodes, less the calls of the program and one.
    """

    lifting: Lifting
    occurrences: tuple[Occurrence, ...]
    placed: tuple[Occurrence, ...]
    gain: int

    @property
    def support(self) -> int:
        """Trajectories in which the program could stand."""
        return len({occurrence.trajectory for occurrence in self.occurrences})


class Selection:
    """Chooses among frequent patterns.

    Args:
        trajectories: What the occurrences point into.
        orderings: The order that the calls of each need.
        orders: For each tool the declared order of its parameters.
        rules: How parameters are lifted.
        min_support: A choice stands in at least so many trajectories.
    """

    def __init__(
        self,
        trajectories: Sequence[Trajectory],
        orderings: Sequence[Ordering],
        *,
        orders: Mapping[str, Sequence[str]],
        rules: LiftingRules,
        min_support: int,
    ) -> None:
        self._trajectories = trajectories
        self._orderings = orderings
        self._orders = orders
        self._rules = rules
        self._min_support = min_support
        self._groupings = [Grouping(ordering=ordering) for ordering in orderings]
        self._lifted: dict[Pattern, tuple[Lifting, tuple[Occurrence, ...]] | None] = {}

    def choose(self, frequent: Mapping[Pattern, Sequence[Occurrence]], limit: int) -> list[Choice]:
        """The patterns worth a tool, the most useful first; at most ``limit``."""
        waiting = [
            (-_gain(pattern, len(found)), -len(pattern.steps), pattern.key, pattern)
            for pattern, found in frequent.items()
        ]
        heapq.heapify(waiting)
        chosen: list[Choice] = []
        while waiting and len(chosen) < limit:
            _, size, key, pattern = heapq.heappop(waiting)
            lifted = self._lift(pattern, frequent[pattern])
            if lifted is None:
                continue
            placed = self._placeable(lifted[1])
            gain = _gain(pattern, len(placed))
            support = len({occurrence.trajectory for occurrence in placed})
            if gain <= 0 or support < self._min_support:
                continue
            if waiting and (-gain, size, key) > waiting[0][:3]:
                heapq.heappush(waiting, (-gain, size, key, pattern))
                continue
            if not _is_program(lifted[0].program):
                continue
            for occurrence in placed:
                self._groupings[occurrence.trajectory].add(occurrence.group)
            lifting, occurrences = lifted
            chosen.append(
                Choice(lifting=lifting, occurrences=occurrences, placed=tuple(placed), gain=gain)
            )
        return chosen

    def _lift(
        self, pattern: Pattern, found: Sequence[Occurrence]
    ) -> tuple[Lifting, tuple[Occurrence, ...]] | None:
        """The program of a pattern, and the occurrences that it can stand for."""
        if pattern not in self._lifted:
            self._lifted[pattern] = self._lift_new(pattern, found)
        return self._lifted[pattern]

    def _lift_new(
        self, pattern: Pattern, found: Sequence[Occurrence]
    ) -> tuple[Lifting, tuple[Occurrence, ...]] | None:
        live = [
            live_results(
                self._trajectories[o.trajectory], self._orderings[o.trajectory], o.positions
            )
            for o in found
        ]
        returned = returned_calls(live, self._rules)
        fitting = [o for o, needed in zip(found, live, strict=True) if set(needed) <= set(returned)]
        if len({occurrence.trajectory for occurrence in fitting}) < self._min_support:
            return None
        lifting = lift(
            pattern,
            fitting,
            self._trajectories,
            returned=returned,
            orders=self._orders,
            rules=self._rules,
        )
        return lifting, tuple(o for o in fitting if self._fits(lifting, o))

    def _fits(self, lifting: Lifting, occurrence: Occurrence) -> bool:
        index = occurrence.trajectory
        why = misfit(
            lifting, self._trajectories[index], self._orderings[index], occurrence.positions
        )
        return why in {None, "unreadable"}

    def _placeable(self, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
        """Occurrences that can be placed together, beside what is placed already."""
        groupings: dict[int, Grouping] = {}
        placed = []
        for occurrence in occurrences:
            index = occurrence.trajectory
            if index not in groupings:
                known = self._groupings[index]
                groupings[index] = Grouping(
                    ordering=known.ordering, groups=list(known.groups), taken=known.taken
                )
            if groupings[index].add(occurrence.group):
                placed.append(occurrence)
        return placed


def _is_program(program: ir.Program) -> bool:
    """Whether a program can be kept: episodes may hold keys and names that none can."""
    try:
        program_from_json(program_to_json(program))
    except CompositeError:
        return False
    return True


def _gain(pattern: Pattern, uses: int) -> int:
    size = len(pattern.steps)
    return uses * (size - 1) - (size + 1)
