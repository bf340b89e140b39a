"""``mine``: composites from what episodes did, without asking any model.

Recurring sub-trajectories become composites, as in CoCoDA (section 3.2), where a teacher writes
them; here they are counted. The result only proposes; ``ToolManager.insert`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.evolution.mining.naming import tool_name
from agentkit.evolution.mining.candidates import ExampleRules, MinedComposite, candidate_of
from agentkit.evolution.mining.lifting import LiftingRules
from agentkit.evolution.mining.ordering import IsReadOnly
from agentkit.evolution.mining.patterns import PatternSearch, SearchLimits
from agentkit.evolution.mining.rewriting import Placement, place, rewrite
from agentkit.evolution.mining.selection import Choice, Selection
from agentkit.evolution.mining.trajectory import Trajectory
from agentkit.library.naming import distinct_name
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class MiningRules:
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
    lifting: LiftingRules = field(default_factory=LiftingRules)
    examples: ExampleRules = field(default_factory=ExampleRules)
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
    rules: MiningRules | None = None,
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
    rules = rules or MiningRules()
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
    rules: MiningRules,
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
