"""``mine``: composites from what episodes did, without asking a model.

Recurring sub-trajectories become composites, as in CoCoDA (section 3.2), where a teacher writes
them; here they are counted. The result only proposes; ``ToolManager.insert`` decides. Composites of
composites come from later episodes, which call the first ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentkit.composites import language as ir
from agentkit.composites.codec import program_from_json, program_to_json
from agentkit.errors import CompositeError
from agentkit.evolution.lifting import (
    Choice,
    Lifting,
    MinedComposite,
    candidate_of,
    lift,
    live_results,
    returned_calls,
    tool_name,
)
from agentkit.evolution.patterns import Occurrence, Ordering, Pattern, PatternSearch
from agentkit.evolution.trajectories import Trajectory
from agentkit.library.conflicts import distinct_name
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class MiningConfig:
    """How composites are mined. The defaults suit hundreds to tens of thousands of episodes.

    Attributes:
        min_support: A composite occurs in at least so many episodes.
        max_calls: Most calls of a composite.
        limit: Most composites.
    """

    min_support: int = 3
    max_calls: int = 6
    limit: int = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class MiningResult:
    """What mining found.

    Attributes:
        composites: The best first.
        trajectories: Trajectories looked at.
        calls: Their calls.
        calls_after: Calls that would have been left, each composite counting as one.
    """

    composites: tuple[MinedComposite, ...]
    trajectories: int
    calls: int
    calls_after: int


def mine(
    trajectories: Iterable[Trajectory],
    tools: Mapping[str, ToolDefinition],
    rules: MiningConfig | None = None,
) -> MiningResult:
    """Composites for calls that recur together, with the data that they pass on.

    The same trajectories, in any order, give the same composites.

    Args:
        trajectories: Successful ones; of several with the same id the first counts.
        tools: Definitions by name.
        rules: How to mine; ``MiningConfig()`` by default.
    """
    rules = rules or MiningConfig()
    unique = {one.trajectory_id: one for one in reversed(list(trajectories))}
    corpus = [unique[key] for key in sorted(unique)]
    reading = {name for name, tool in tools.items() if tool.signature.effects.is_read_only}
    search = PatternSearch(corpus, reading.__contains__)
    frequent = {
        pattern: found
        for pattern, found in search.frequent(
            min_support=rules.min_support, max_calls=rules.max_calls
        ).items()
        if all(step.tool in tools for step in pattern.steps)
    }
    orders = {name: tuple(tool.signature.properties) for name, tool in tools.items()}
    selection = Selection(corpus, search.orderings, orders=orders, min_support=rules.min_support)
    taken = set(tools)
    found = tuple(
        candidate_of(choice, _name(choice, taken), corpus, tools)
        for choice in selection.choose(frequent, rules.limit)
    )
    calls = sum(len(one.steps) for one in corpus)
    return MiningResult(
        composites=found,
        trajectories=len(corpus),
        calls=calls,
        calls_after=calls - sum(one.saves for one in found),
    )


def _name(choice: Choice, taken: set[str]) -> str:
    parameters = {parameter.name for parameter in choice.lifting.parameters}
    wanted = tool_name([step.tool for step in choice.lifting.pattern.steps])
    name = distinct_name(wanted, taken | parameters)
    taken.add(name)
    return name


class Selection:
    """Choose the patterns that save most, greedily; no call belongs to two of them.

    Args:
        trajectories: The corpus.
        orderings: The order that the calls of each need.
        orders: Names of the parameters of each tool, as declared.
        min_support: Trajectories that a chosen pattern is used in at least.
    """

    def __init__(
        self,
        trajectories: Sequence[Trajectory],
        orderings: Sequence[Ordering],
        *,
        orders: Mapping[str, Sequence[str]],
        min_support: int,
    ) -> None:
        self._trajectories = trajectories
        self._orderings = orderings
        self._orders = orders
        self._min_support = min_support
        self._taken = [0] * len(trajectories)
        self._lifted: dict[Pattern, tuple[Lifting, tuple[Occurrence, ...]] | None] = {}

    def choose(self, frequent: Mapping[Pattern, Sequence[Occurrence]], limit: int) -> list[Choice]:
        """The best patterns, the best first.

        What a pattern saves only falls when others take its calls. So the first in the queue is
        looked at again, and chosen if it is still the first (a lazy greedy choice).

        Args:
            frequent: Patterns with their occurrences.
            limit: Most patterns.
        """
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
                self._taken[occurrence.trajectory] |= occurrence.group
            lifting, occurrences = lifted
            chosen.append(
                Choice(lifting=lifting, occurrences=occurrences, placed=tuple(placed), gain=gain)
            )
        return chosen

    def _lift(
        self, pattern: Pattern, found: Sequence[Occurrence]
    ) -> tuple[Lifting, tuple[Occurrence, ...]] | None:
        """The program of a pattern, and the occurrences that it can stand for; worked out once."""
        if pattern not in self._lifted:
            self._lifted[pattern] = self._lift_new(pattern, found)
        return self._lifted[pattern]

    def _lift_new(
        self, pattern: Pattern, found: Sequence[Occurrence]
    ) -> tuple[Lifting, tuple[Occurrence, ...]] | None:
        live = [
            live_results(self._trajectories[o.trajectory], self._orderings[o.trajectory], o)
            for o in found
        ]
        returned = returned_calls(live)
        fitting = tuple(
            o for o, needed in zip(found, live, strict=True) if set(needed) <= set(returned)
        )
        if len({occurrence.trajectory for occurrence in fitting}) < self._min_support:
            return None
        lifting = lift(pattern, fitting, self._trajectories, returned=returned, orders=self._orders)
        return lifting, fitting

    def _placeable(self, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
        """The occurrences whose calls nothing has taken, and that share none with each other."""
        taken: dict[int, int] = {}
        placed = []
        for occurrence in occurrences:
            index = occurrence.trajectory
            before = taken.get(index, self._taken[index])
            if not before & occurrence.group:
                taken[index] = before | occurrence.group
                placed.append(occurrence)
        return placed


def _is_program(program: ir.Program) -> bool:
    """Whether the language takes it: keys and constants of episodes can be unusual."""
    try:
        program_from_json(program_to_json(program))
    except CompositeError:
        return False
    return True


def _gain(pattern: Pattern, uses: int) -> int:
    """Calls that a composite saves, less the calls that it is made of and one."""
    size = len(pattern.steps)
    return uses * (size - 1) - (size + 1)
