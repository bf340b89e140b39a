"""``mine``: composites from what episodes did, without asking a model.

Recurring sub-trajectories become composites, as in CoCoDA (section 3.2), where a teacher writes
them; here they are counted. The result only proposes; ``ToolManager.insert`` decides.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentkit.composites import language as ir
from agentkit.composites.codec import program_from_json, program_to_json
from agentkit.composites.composite import composite_tool
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import AgentKitError, CompositeError, ToolFailed
from agentkit.evolution.lifting import (
    Choice,
    ExampleConfig,
    Lifting,
    LiftingConfig,
    MinedComposite,
    candidate_of,
    fingerprint,
    lift,
    live_results,
    returned_calls,
    tool_name,
)
from agentkit.evolution.patterns import (
    Grouping,
    IsReadOnly,
    Occurrence,
    Ordering,
    Pattern,
    PatternSearch,
    SearchLimits,
    arrange,
    bits,
)
from agentkit.evolution.trajectories import (
    Flow,
    Given,
    Path,
    RecordedCall,
    Source,
    Step,
    Trajectory,
    at_path,
    cast_value,
)
from agentkit.library.conflicts import distinct_name
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

# --- Putting composites in the place of the calls that they stand for ----------------------------


Misfit = Literal[
    "result_needed",  # a result that the composite keeps to itself is used outside
    "arguments_differ",  # arguments that became one parameter have different values
    "constant_differs",  # an argument that became a constant has another value
    "unreadable",  # a flow reads what the recording does not hold
]
"""Why a composite can not stand in for calls that have its pattern."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """A composite in the place of some calls.

    Attributes:
        name: Name of the composite.
        lifting: Its program.
        positions: LibraryState of each call, in the program's order.
    """

    name: str
    lifting: Lifting
    positions: tuple[int, ...]

    @property
    def group(self) -> int:
        """The positions as a set of bits."""
        return sum(1 << position for position in self.positions)


def misfit(
    lifting: Lifting, trajectory: Trajectory, ordering: Ordering, positions: Sequence[int]
) -> Misfit | None:
    """Why a program can not stand in for these calls; None when it can."""
    live = live_results(trajectory, ordering, positions)
    if not set(live) <= set(lifting.returned):
        return "result_needed"
    steps = [trajectory.steps[position] for position in positions]
    for parameter in lifting.parameters:
        sources = [steps[call].sources[name] for call, name in parameter.slots]
        if len({fingerprint(trajectory, source) for source in sources}) > 1:
            return "arguments_differ"
    for (call, name), value in lifting.constants.items():
        if fingerprint(trajectory, steps[call].sources[name]) != fingerprint(
            trajectory, Given(value=value)
        ):
            return "constant_differs"
    for step, shape in zip(steps, lifting.pattern.steps, strict=True):
        for name, link in shape.arguments:
            source = step.sources[name]
            if link is not None and fingerprint(trajectory, source).startswith("unread "):
                return "unreadable"
    return None


def place(
    trajectory: Trajectory, composites: Mapping[str, Lifting], search: PatternSearch
) -> tuple[Placement, ...]:
    """Where composites can stand in for calls, greedily: earlier composites first.

    Args:
        trajectory: The calls.
        composites: Programs by name, the most useful first.
        search: Knows which calls may change places.
    """
    by_pattern: dict[Pattern, list[str]] = {}
    for name, lifting in composites.items():
        by_pattern.setdefault(lifting.pattern, []).append(name)
    ordering = search.ordering(trajectory)
    found = search.matching(trajectory, by_pattern)
    grouping = Grouping(ordering=ordering)
    placed: list[Placement] = []
    for name, lifting in composites.items():
        for positions in found.get(lifting.pattern, ()):
            if misfit(lifting, trajectory, ordering, positions) is None:
                placement = Placement(name=name, lifting=lifting, positions=positions)
                if grouping.add(placement.group):
                    placed.append(placement)
    return tuple(placed)


def rewrite(
    trajectory: Trajectory, ordering: Ordering, placements: Sequence[Placement]
) -> Trajectory:
    """The trajectory with one call of a composite in the place of each group of calls.

    Args:
        trajectory: The calls.
        ordering: The order that they need.
        placements: Disjoint, and together in an order that exists, as ``place`` gives them.

    Raises:
        ValueError: The placements overlap or need each other's results.
    """
    order = arrange(ordering, [placement.group for placement in placements])
    if order is None:
        raise ValueError("the placements need results of each other")
    by_group = {placement.group: placement for placement in placements}
    moved = _Moved(trajectory)
    for new, unit in enumerate(order):
        placement = by_group.get(unit)
        for old in bits(unit):
            path: Path | None = ()
            if placement is not None:
                path = placement.lifting.result_path(placement.positions.index(old))
            moved.places[old] = (new, path)
    steps = tuple(
        moved.single(next(bits(unit))) if unit not in by_group else moved.composite(by_group[unit])
        for unit in order
    )
    return Trajectory(
        trajectory_id=trajectory.trajectory_id,
        steps=steps,
        request=trajectory.request,
        answered=frozenset(moved.places[position][0] for position in trajectory.answered),
    )


class _Moved:
    """Where the results of the old calls are among the new ones."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._old = trajectory
        self.places: dict[int, tuple[int, Path | None]] = {}

    def single(self, position: int) -> Step:
        step = self._old.steps[position]
        sources = {name: self._source(source) for name, source in step.sources.items()}
        return Step(
            tool=step.tool,
            sources=sources,
            result=step.result,
            is_whole=step.is_whole,
            inside=step.inside,
        )

    def composite(self, placement: Placement) -> Step:
        steps = [self._old.steps[position] for position in placement.positions]
        inside: list[RecordedCall] = []
        is_whole = all(step.is_whole for step in steps)
        for position in placement.positions:
            try:
                inside.extend(self._old.recorded(position))
            except LookupError:  # an argument that the recording does not hold
                is_whole = False
        sources: dict[str, Source] = {}
        for parameter in placement.lifting.parameters:
            call, name = parameter.slots[0]
            sources[parameter.name] = self._source(steps[call].sources[name])
        return Step(
            tool=placement.name,
            sources=sources,
            result=placement.lifting.result_of([step.result for step in steps]),
            is_whole=is_whole,
            inside=tuple(inside),
        )

    def _source(self, source: Source) -> Source:
        if isinstance(source, Given):
            return Given(
                value=source.value, uses=tuple(self.places[used][0] for used in source.uses)
            )
        step, path = self.places[source.step]
        if path is None:
            raise ValueError(f"the result of call {source.step} is needed but not returned")
        return replace(source, step=step, path=(*path, *source.path))


# --- Which patterns are worth a tool: those that make the calls of all episodes shortest ---------
# A greedy form of the minimum description length principle: the corpus costs one unit a call, a
# new tool costs one unit for each call of its program and one for its name. The pattern that saves
# most is taken, its occurrences are taken out, and so on until nothing saves.


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
        rules: LiftingConfig,
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


# --- ``mine``: composites from what episodes did, without asking any model -----------------------
# Recurring sub-trajectories become composites, as in CoCoDA (section 3.2), where a teacher writes
# them; here they are counted. The result only proposes; ``ToolManager.insert`` decides.


@dataclass(frozen=True, kw_only=True, slots=True)
class MiningConfig:
    """What mining looks for, and how far it goes.

    Attributes:
        search: How far the search for patterns goes.
        lifting: How parameters are lifted.
        examples: Which occurrences become worked calls.
        rounds: After each round the composites stand in for their calls, and the next round may
            find composites of them.
        limit: Most composites in all rounds together.
    """

    search: SearchLimits = field(default_factory=SearchLimits)
    lifting: LiftingConfig = field(default_factory=LiftingConfig)
    examples: ExampleConfig = field(default_factory=ExampleConfig)
    rounds: int = 3
    limit: int = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class MiningResult:
    """What mining found.

    Attributes:
        composites: The proposals, children before those that call them.
        trajectories: How many were looked at.
        calls: Calls in them.
        calls_after: Calls that are left when the composites stand in.
        unknown_tools: Tools that were called but are not in the library; calls of them are in no
            composite.
    """

    composites: tuple[MinedComposite, ...]
    trajectories: int
    calls: int
    calls_after: int
    unknown_tools: tuple[str, ...] = ()


def mine(
    trajectories: Iterable[Trajectory],
    tools: Mapping[str, ToolDefinition],
    rules: MiningConfig | None = None,
) -> MiningResult:
    """Find recurring groups of calls that pass data to each other, and make composites of them.

    The same trajectories give the same composites in whatever order they come. For trajectories
    of bounded length the time is linear in their number.

    Args:
        trajectories: What episodes did (``trajectories_of``); of several with one id, the first
            counts.
        tools: Definitions of the tools by name.
        rules: What to look for; None for the defaults.
    """
    rules = rules or MiningConfig()
    unique = {one.trajectory_id: one for one in reversed(list(trajectories))}
    corpus = [unique[key] for key in sorted(unique)]
    called = {step.tool for one in corpus for step in one.steps}
    calls = sum(len(one.steps) for one in corpus)
    known = dict(tools)
    composites: list[MinedComposite] = []
    for number in range(1, rules.rounds + 1):
        found, corpus = _round(corpus, known, rules, number, rules.limit - len(composites))
        composites += found
        known |= {one.name: one.definition for one in found}
        if not found:
            break
    return MiningResult(
        composites=tuple(composites),
        trajectories=len(corpus),
        calls=calls,
        calls_after=sum(len(one.steps) for one in corpus),
        unknown_tools=tuple(sorted(called - tools.keys())),
    )


def _round(
    corpus: list[Trajectory],
    tools: Mapping[str, ToolDefinition],
    rules: MiningConfig,
    number: int,
    limit: int,
) -> tuple[list[MinedComposite], list[Trajectory]]:
    search = PatternSearch(read_only(tools))
    frequent = {
        pattern: found
        for pattern, found in search.frequent(corpus, rules.search).items()
        if all(step.tool in tools for step in pattern.steps)
    }
    orderings = [search.ordering(trajectory) for trajectory in corpus]
    selection = Selection(
        corpus,
        orderings,
        orders={name: tuple(tool.signature.properties) for name, tool in tools.items()},
        rules=rules.lifting,
        min_support=rules.search.min_support,
    )
    taken = set(tools)
    found: list[MinedComposite] = []
    placements: dict[int, list[Placement]] = {}
    for choice in selection.choose(frequent, limit):
        name = _name(choice, taken)
        found.append(
            candidate_of(choice, name, corpus, tools, rules=rules.examples, mining_round=number)
        )
        for occurrence in choice.placed:
            placement = Placement(name=name, lifting=choice.lifting, positions=occurrence.positions)
            placements.setdefault(occurrence.trajectory, []).append(placement)
    after = [
        rewrite(one, orderings[index], placements[index]) if index in placements else one
        for index, one in enumerate(corpus)
    ]
    return found, after


def _name(choice: Choice, taken: set[str]) -> str:
    parameters = {parameter.name for parameter in choice.lifting.parameters}
    wanted = tool_name([step.tool for step in choice.lifting.pattern.steps])
    name = distinct_name(wanted, taken | parameters)
    taken.add(name)
    return name


def apply(
    trajectory: Trajectory,
    composites: Sequence[MinedComposite],
    tools: Mapping[str, ToolDefinition],
) -> Trajectory:
    """A trajectory with mined composites in the place of the calls that they stand for.

    Args:
        trajectory: The calls, such as those of an episode that nothing was mined from.
        composites: As ``mine`` gives them.
        tools: Definitions of the tools by name, without the composites.
    """
    known = dict(tools)
    for number in sorted({composite.round for composite in composites}):
        own = {one.name: one for one in composites if one.round == number}
        search = PatternSearch(read_only(known))
        placed = place(trajectory, {name: one.lifting for name, one in own.items()}, search)
        if placed:
            trajectory = rewrite(trajectory, search.ordering(trajectory), placed)
        known |= {name: one.definition for name, one in own.items()}
    return trajectory


def read_only(tools: Mapping[str, ToolDefinition]) -> IsReadOnly:
    """Whether a tool is known to change nothing, read from its definition."""
    names = {name for name, tool in tools.items() if tool.signature.effects.is_read_only}
    return names.__contains__


# --- Running calls again on recorded answers: the proof that composites change nothing but th ----
# Running calls again on recorded answers: the proof that composites change nothing but the count.
#
# Every primitive is answered from the trajectory's own records; composites are run by the
# interpreter. So a composite that calls a primitive with other arguments, or once too often, fails
# here.


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeCall:
    """One call of a primitive.

    Attributes:
        tool: Its name.
        arguments: What it got, as JSON with sorted keys.
        result: What it answered, as JSON with sorted keys.
    """

    tool: str
    arguments: str
    result: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """What came of running a rewritten trajectory on the records of the original one.

    Attributes:
        calls: Calls that the caller made, composites counting once.
        made: Calls of primitives, in the order in which they ran.
        same_calls: Whether these are the original calls, each as often as there.
        same_results: Whether each call that the caller made returned what the records say.
        error: Why it stopped early; empty when it did not.
    """

    calls: int
    made: tuple[MadeCall, ...]
    same_calls: bool
    same_results: bool
    error: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether it ran to its end with the same calls and the same results."""
        return self.same_calls and self.same_results and not self.error


async def replay(
    original: Trajectory,
    rewritten: Trajectory,
    tools: Mapping[str, ToolDefinition],
    *,
    limits: CompositeLimits | None = None,
) -> Replay:
    """Run a rewritten trajectory, answering primitives from the records of the original.

    Args:
        original: The calls with their recorded results.
        rewritten: The same with composites.
        tools: Definitions of all tools that ``rewritten`` calls, of composites and what they call.
            A call that was recorded several times is answered in the order of the records.
        limits: Caps on the composites' runs.
    """
    desk = _Desk(original, tools, limits)
    results: list[Any] = []
    error = ""
    try:
        for step in rewritten.steps:
            arguments = {name: _read(source, results) for name, source in step.sources.items()}
            results.append(await desk.run(step.tool, arguments))
    except (AgentKitError, ToolFailed, LookupError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    expected = [step.result for step in rewritten.steps]
    return Replay(
        calls=len(rewritten.steps),
        made=tuple(desk.made),
        same_calls=sorted(map(_call_key, desk.made))
        == sorted(map(_call_key, calls_as_text(original))),
        same_results=_json(results) == _json(expected),
        error=error,
    )


def calls_as_text(trajectory: Trajectory) -> tuple[MadeCall, ...]:
    """The calls of a trajectory with their answers."""
    return tuple(
        MadeCall(
            tool=step.tool,
            arguments=_json(trajectory.arguments(position)),
            result=_json(step.result),
        )
        for position, step in enumerate(trajectory.steps)
    )


class _Desk:
    """Answers calls from records, and keeps a list of them."""

    def __init__(
        self,
        original: Trajectory,
        tools: Mapping[str, ToolDefinition],
        limits: CompositeLimits | None,
    ) -> None:
        self.made: list[MadeCall] = []
        self._definitions = tools
        self._limits = limits
        self._tools: dict[str, Tool] = {}
        self._answers: dict[tuple[str, str], list[Any]] = {}
        for call, step in zip(calls_as_text(original), original.steps, strict=True):
            self._answers.setdefault((call.tool, call.arguments), []).append(step.result)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        tool = self.tool(name)
        result = tool(**arguments)
        return await result if tool.is_async else result

    def tool(self, name: str) -> Tool:
        if name not in self._tools:
            definition = self._definitions[name]
            if definition.is_composite:
                children = {c.name: self.tool(c.name) for c in definition.signature.children}
                made = composite_tool(definition, children, limits=self._limits)
            else:
                made = Tool(definition=definition, function=self._answering(name), is_async=True)
            self._tools[name] = made
        return self._tools[name]

    def _answering(self, name: str) -> Callable[..., Any]:
        # Async without waiting for anything: the answers come one by one, in a fixed order.
        async def answer(**arguments: Any) -> Any:
            key = (name, _json(arguments))
            waiting = self._answers.get(key)
            if not waiting:
                raise ToolFailed(f"no recorded answer of {name} for {key[1][:200]}")
            result = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.made.append(MadeCall(tool=name, arguments=key[1], result=_json(result)))
            return result

        return answer


def _read(source: Source, results: Sequence[Any]) -> Any:
    if not isinstance(source, Flow):
        return source.value
    value = at_path(results[source.step], source.path)
    return cast_value(value, source.cast) if source.cast else value


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _call_key(call: MadeCall) -> tuple[str, str, str]:
    return (call.tool, call.arguments, call.result)
