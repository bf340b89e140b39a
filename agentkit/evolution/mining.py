"""Composites from what episodes did, without asking a model.

Recurring sub-trajectories become composites, as in CoCoDA (section 3.3 and appendix D.1), where a
teacher writes them; here they are counted. The result only proposes; the Tool Manager decides.
Composites of composites come from later episodes, which call the first ones.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from agentkit.composites.composite import program_from_json, program_of, program_to_json
from agentkit.episodes import Episode
from agentkit.errors import CompositeError, UsageError
from agentkit.evolution.dry_run import MAX_EXAMPLES, call_key, runs_live
from agentkit.evolution.duplicates import normal_form
from agentkit.evolution.insertion import CheckResult
from agentkit.evolution.learning import PASSWORD_FIELD, private_part, suspicious_part
from agentkit.evolution.lifting import (
    MOST_EXAMPLES,
    Lifting,
    MinedComposite,
    ReplacedCalls,
    WorkedCall,
    definition_of,
    lift,
    tool_name,
    with_worked_calls,
    worked_calls,
)
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.patterns import CallOrder, Occurrence, Pattern, PatternSearch, support_of
from agentkit.evolution.programs import mined_programs
from agentkit.evolution.proposal import Proposal, ProposalRecord
from agentkit.evolution.trajectories import Trajectory, trajectories_of
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.merging import distinct_name
from agentkit.library.pins import with_current_pins
from agentkit.metrics.calls import CanonicalCall
from agentkit.tools.definition import Example, ToolDefinition


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
    """

    composites: tuple[MinedComposite, ...]
    trajectories: int
    calls: int

    @property
    def calls_after(self) -> int:
        """Calls that would have been left, each composite counting as one."""
        return self.calls - sum(one.saves for one in self.composites)


def mine(
    trajectories: Iterable[Trajectory],
    tools: Mapping[str, ToolDefinition],
    rules: MiningConfig = MiningConfig(),
) -> MiningResult:
    """Composites for calls that recur together, with the data that they pass on.

    The same trajectories, in any order, give the same composites.

    Args:
        trajectories: Successful ones; of several with the same id the first counts.
        tools: Definitions by name.
        rules: How to mine.
    """
    unique = {one.trajectory_id: one for one in reversed(list(trajectories))}
    corpus = [unique[key] for key in sorted(unique)]
    reading = {name for name, tool in tools.items() if tool.signature.effects.is_read_only}
    search = PatternSearch(corpus, reading.__contains__)
    frequent = search.frequent(min_support=rules.min_support, max_calls=rules.max_calls)
    usable = {
        pattern: found
        for pattern, found in frequent.items()
        if all(step.tool in tools for step in pattern.steps)
    }
    chooser = _Chooser(corpus, search.orders, tools, rules)
    return MiningResult(
        composites=tuple(chooser.choose(usable)),
        trajectories=len(corpus),
        calls=sum(len(one.steps) for one in corpus),
    )


# --- Which patterns are worth a tool --------------------------------------------------------------

_SHARE = 0.2  # of the occurrences that need a result, so that it is returned
MOST_EVIDENCE = 50
"""Ids of episodes that a candidate names."""

_Lifted = tuple[Lifting, tuple[Occurrence, ...]]


class _Chooser:
    """Chooses the patterns that save most, greedily; no call belongs to two of them."""

    def __init__(
        self,
        corpus: Sequence[Trajectory],
        orders: Sequence[CallOrder],
        tools: Mapping[str, ToolDefinition],
        rules: MiningConfig,
    ) -> None:
        self._corpus = corpus
        self._orders = orders
        self._tools = tools
        self._rules = rules
        self._declared = {name: tuple(tool.signature.properties) for name, tool in tools.items()}
        self._names = set(tools)
        self._taken = [0] * len(corpus)

    def choose(self, frequent: Mapping[Pattern, Sequence[Occurrence]]) -> list[MinedComposite]:
        """The best composites, the best first.

        What a pattern saves only falls when others take its calls. So the first in the queue is
        looked at again, and chosen if it is still the first (a lazy greedy choice).
        """
        waiting = [(-_gain(one, len(at)), -len(one.steps), one.key) for one, at in frequent.items()]
        by_key = {pattern.key: pattern for pattern in frequent}
        lifted: dict[str, _Lifted | None] = {}
        heapq.heapify(waiting)
        chosen: list[MinedComposite] = []
        while waiting and len(chosen) < self._rules.limit:
            _, size, key = heapq.heappop(waiting)
            pattern = by_key[key]
            if key not in lifted:
                lifted[key] = self._lifted(pattern, frequent[pattern])
            found = lifted[key]
            if found is None:
                continue
            placed = self._placeable(found[1])
            gain = _gain(pattern, len(placed))
            if gain <= 0 or support_of(placed) < self._rules.min_support:
                continue
            if waiting and (-gain, size, key) > waiting[0]:
                heapq.heappush(waiting, (-gain, size, key))
                continue
            if _is_program(found[0]):
                chosen.append(self._composite(*found, placed))
        return chosen

    def _lifted(self, pattern: Pattern, found: Sequence[Occurrence]) -> _Lifted | None:
        """The program of a pattern, and the occurrences that it can stand for.

        It returns the results that enough occurrences need outside of it.
        """
        needed = [self._needed(one) for one in found]
        counted = Counter(call for one in needed for call in one)
        returned = tuple(sorted(one for one in counted if counted[one] >= _SHARE * len(found)))
        fitting = tuple(
            one for one, calls in zip(found, needed, strict=True) if calls <= set(returned)
        )
        if support_of(fitting) < self._rules.min_support:
            return None
        lifting = lift(pattern, fitting, self._corpus, returned=returned, declared=self._declared)
        return lifting, fitting

    def _needed(self, occurrence: Occurrence) -> set[int]:
        """Indexes of the calls of an occurrence whose results are needed outside of it.

        A later call outside uses it, the final answer shows it, or no call uses it at all: then it
        was made for the answer.
        """
        users = self._orders[occurrence.trajectory].users
        answered = self._corpus[occurrence.trajectory].answered
        return {
            at
            for at, position in enumerate(occurrence.positions)
            if not users[position] or users[position] & ~occurrence.group or position in answered
        }

    def _placeable(self, occurrences: Iterable[Occurrence]) -> list[Occurrence]:
        """The occurrences whose calls nothing has taken, and that share none with each other."""
        taken: dict[int, int] = {}
        placed = []
        for one in occurrences:
            before = taken.get(one.trajectory, self._taken[one.trajectory])
            if not before & one.group:
                taken[one.trajectory] = before | one.group
                placed.append(one)
        return placed

    def _composite(
        self, lifting: Lifting, occurrences: Sequence[Occurrence], placed: Sequence[Occurrence]
    ) -> MinedComposite:
        for one in placed:
            self._taken[one.trajectory] |= one.group
        parameters = {parameter.name for parameter in lifting.parameters}
        wanted = tool_name([step.tool for step in lifting.pattern.steps])
        name = distinct_name(wanted, self._names | parameters)
        self._names.add(name)
        ids = dict.fromkeys(self._corpus[one.trajectory].trajectory_id for one in placed)
        worked = worked_calls(lifting, occurrences, self._corpus)
        composite = MinedComposite(
            definition=definition_of(lifting, name, self._tools),
            lifting=lifting,
            support=support_of(occurrences),
            uses=len(placed),
            evidence=tuple(ids)[:MOST_EVIDENCE],
            worked=worked,
            replaces=tuple(self._replaced(lifting, placed)),
        )
        return with_worked_calls(composite, worked[:MOST_EXAMPLES])

    def _replaced(self, lifting: Lifting, placed: Iterable[Occurrence]) -> Iterator[ReplacedCalls]:
        """The calls that a composite stands for, where their arguments are known whole."""
        for one in placed:
            trajectory = self._corpus[one.trajectory]
            with suppress(LookupError):  # an argument that the recording does not hold
                yield ReplacedCalls(
                    trajectory_id=trajectory.trajectory_id,
                    positions=one.positions,
                    arguments=lifting.arguments_of([*map(trajectory.arguments, one.positions)]),
                )


def _is_program(lifting: Lifting) -> bool:
    """Whether the language takes it: keys and constants of episodes can be unusual."""
    try:
        program_from_json(program_to_json(lifting.program), is_new=True)
    except CompositeError:
        return False
    return True


def _gain(pattern: Pattern, uses: int) -> int:
    """Calls that a composite saves, less the calls that it is made of and one."""
    size = len(pattern.steps)
    return uses * (size - 1) - (size + 1)


# --- Recorded calls of children, kept as their worked calls ---------------------------------------
# A composite whose children touch the world cannot be tried out by calling them. InsertTool
# answers them from their worked calls, so what the episodes recorded of them has to be there first.
# The world changes between episodes: the same question may have been answered differently. A tool
# keeps one answer to a question, and worked calls that rely on another one are left out.


def with_recordings(
    library: Library, composites: Iterable[MinedComposite]
) -> tuple[tuple[MinedComposite, ...], dict[str, list[Example]]]:
    """The composites with worked calls, and the recorded calls of primitives that these rely on.

    Tools that may run while a candidate is tried out need no records.

    Args:
        library: The library that the composites are proposed for.
        composites: What mining found.
    """
    shelf = _Shelf(library)
    chosen = [
        with_worked_calls(one, islice(filter(shelf.take, one.worked), MOST_EXAMPLES))
        for one in composites
    ]
    return tuple(chosen), shelf.new


class _Shelf:
    """One answer for each question that a tool was asked."""

    def __init__(self, library: Library) -> None:
        self._definitions = {
            one.name: one
            for one in library.definitions
            if not one.is_composite and not runs_live(one)
        }
        self._known: dict[str, dict[CanonicalCall, Example]] = {
            name: {call_key(one, made.arguments): made for made in reversed(one.worked_calls)}
            for name, one in self._definitions.items()
        }
        self.new: dict[str, list[Example]] = {}

    def take(self, worked: WorkedCall) -> bool:
        """Keep the records behind a worked call, unless they contradict those that are kept.

        Models read worked calls, so what looks private or like an attack on models is not kept.
        """
        if not _is_presentable(worked):
            return False
        new: dict[tuple[str, CanonicalCall], Example] = {}
        for call in worked.recorded:
            if call.tool not in self._known:
                continue
            key = call_key(self._definitions[call.tool], call.arguments)
            example = Example(
                arguments=call.arguments, result=call.result, query=worked.example.query
            )
            known = self._known[call.tool].get(key) or new.setdefault((call.tool, key), example)
            if _text(known.result) != _text(call.result):
                return False
        more = Counter(tool for tool, _ in new)
        if any(len(self._known[tool]) + more[tool] > MAX_EXAMPLES for tool in more):
            return False
        for (tool, key), example in new.items():
            self._known[tool][key] = example
            self.new.setdefault(tool, []).append(example)
        return True


def _is_presentable(worked: WorkedCall) -> bool:
    """Whether nothing in a worked call, or in the calls behind it, looks private or hostile."""
    parts = [[call.arguments, call.result] for call in worked.recorded]
    example = worked.example
    said = [example.query, example.arguments, example.result, *parts]
    is_private = private_part(said, secret=PASSWORD_FIELD) is not None
    return not is_private and suspicious_part(said) is None


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _recorded(
    manager: ToolManager, composites: Sequence[MinedComposite]
) -> tuple[MinedComposite, ...]:
    """Record the calls that the composites need; the composites with what agrees with them."""
    chosen, recorded = with_recordings(manager.library, composites)
    if recorded:
        manager.record(
            recorded,
            evidence=tuple(dict.fromkeys(id_ for one in composites for id_ in one.evidence)),
            reason="recorded calls, to try mined composites on",
        )
        # another writer may have recorded other answers in between
        chosen, _ = with_recordings(manager.library, composites)
    return chosen


# --- Handing them to the Tool Manager -------------------------------------------------------------

_MINING = Author(kind="program", name="mining")


def insert_mined(
    manager: ToolManager, composites: Sequence[MinedComposite]
) -> dict[str, CheckResult]:
    """Put mined composites into the library at once, as far as the Tool Manager takes them.

    Their literals come from conversations and nobody is asked, so this is for libraries that no
    user is served from: experiments and benchmarks. Elsewhere ``submit_mined`` makes them wait.

    Returns:
        What came of each, by its proposed name.

    Raises:
        StoreError: The store failed, or other writers were faster every time.
    """
    return {
        one.name: manager.insert(
            pinned_to(one, manager.library), evidence=one.evidence, reason=_reason(one)
        )
        for one in _recorded(manager, composites)
    }


async def submit_mined(
    manager: ToolManager, episodes: Iterable[Episode], rules: MiningConfig
) -> tuple[ProposalRecord, ...]:
    """Mine episodes, and propose what was not proposed before.

    The proposals wait, whatever the tools do: a composite is a tool that models did not have. One
    with the program of a composite that there is, or that was proposed, is left out.

    Args:
        manager: Takes the proposals in.
        episodes: What happened.
        rules: What mining looks for.

    Returns:
        Where each new proposal stands.
    """
    tools = {definition.name: definition for definition in manager.library.definitions}
    seen = tuple(episodes)
    found = mine(trajectories_of(seen).trajectories, tools, rules)
    names = [one.name for one in found.composites]
    programs = mined_programs(seen, tools, min_support=rules.min_support, taken=names)
    earlier = (record.candidate for record in manager.ledger.proposals.values())
    there = (*tools.values(), *(one for one in earlier if one is not None))
    known = {normal_form(program) for one in there if (program := program_of(one)) is not None}
    fresh = []
    for one in (*programs, *found.composites):
        form = normal_form(one.lifting.program)
        if form not in known:
            known.add(form)
            fresh.append(one)
    records = []
    for one in _recorded(manager, fresh) if fresh else ():
        proposal = Proposal.of(
            None,
            pinned_to(one, manager.library),
            stream="composite",
            author=_MINING,
            reason=_reason(one),
            evidence=one.evidence,
        )
        with suppress(UsageError):  # it is too large to be kept
            records.append(await manager.submit_async(proposal))
    return tuple(records)


def _reason(composite: MinedComposite) -> str:
    return f"mined: {composite.uses} uses in {composite.support} episodes"


def pinned_to(composite: MinedComposite, library: Library) -> ToolDefinition:
    """The definition of a mined composite, pinned to its children as a library holds them now."""
    definition = composite.definition
    return with_current_pins(library.with_tools([definition]), definition)
