"""``CascadeRetriever``: stages in a visible order, and a token budget that always holds."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from operator import add, or_
from time import perf_counter, thread_time
from typing import Any

from agentkit.episodes import GoalTrace, StageReport
from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.retrieval.budget import Packed, PriceList, pack
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.card_tokens import CardTokens
from agentkit.retrieval.index.channel import Channel
from agentkit.retrieval.index.config import IndexConfig
from agentkit.retrieval.index.examples import ExampleChannel
from agentkit.retrieval.index.lexical import LexicalChannel
from agentkit.retrieval.index.tool_index import ToolIndex
from agentkit.retrieval.planner import Plan, Planner, identity_plan, planned
from agentkit.retrieval.rankers import Ranker
from agentkit.retrieval.retriever import Hit, Retrieval
from agentkit.retrieval.stages.abstraction import Abstraction
from agentkit.retrieval.stages.description import Description
from agentkit.retrieval.stages.exact_name import ExactName
from agentkit.retrieval.stages.examples import Examples
from agentkit.retrieval.stages.near_duplicates import NearDuplicates
from agentkit.retrieval.stages.references import References
from agentkit.retrieval.stages.signature import Signature
from agentkit.retrieval.stages.specification import Specification
from agentkit.retrieval.survivors import Stage, Survivors
from agentkit.retrieval.tokens import TokenCounter, estimate_tokens


def merged(found: Sequence[Survivors]) -> Survivors:
    """The survivors of all sub-goals; their hits take turns, the best of each first.

    A tool found for two steps stands where it is best. Scores stay what they were in their own
    ranking, so they do not fall from hit to hit.

    Args:
        found: At least one, of one library.
    """
    first = found[0]
    if len(found) == 1:
        return first
    masks = [survivors.mask for survivors in found if survivors.mask is not None]
    return replace(
        first,
        mask=reduce(or_, masks) if len(masks) == len(found) else None,
        factors=None,
        hits=tuple(_in_turn([survivors.hits for survivors in found])),
        usage=reduce(add, (survivors.usage for survivors in found), Usage()),
        notes=tuple(dict.fromkeys(note for survivors in found for note in survivors.notes)),
    )


def _in_turn(rankings: Sequence[Sequence[Hit]]) -> Iterator[Hit]:
    taken: set[str] = set()
    for rank in zip_longest(*rankings):
        for hit in rank:
            if hit is not None and hit.definition.name not in taken:
                taken.add(hit.definition.name)
                yield hit


_MOST = 64
"""An episode keeps them; of a hundred pages that somebody pasted in a few tell enough."""


def unmatched_terms(
    query: str, index: ToolIndex, channels: Sequence[Channel[Any]]
) -> tuple[str, ...]:
    """The first 64 terms of ``query`` that stand in no text of any tool, examples included.

    What users ask for and no tool speaks of is the first sign of a missing tool, or of a
    description in other words than theirs.

    Args:
        query: A request.
        index: The index of the library.
        channels: The channels of that index. Without one for words nothing is known, and no term
            is called unmatched.
    """
    words = [one for one in channels if isinstance(one, LexicalChannel)][:1]
    unknown = [term for one in words for term in one.unknown(index, one.query(query))]
    for channel in channels:
        if isinstance(channel, ExampleChannel):
            unknown = channel.unknown(index, unknown)
    return tuple(unknown[:_MOST])


logger = logging.getLogger(__name__)

_NOTHING = "no step of the plan found a tool; the request was searched as it is"


class CascadeRetriever:
    """Runs stages in order, then shows as much of the survivors as the budget allows.

    The result holds at most ``shortlist`` tools, of which at most ``offer`` are given in full, and
    never costs more than ``token_budget``. As long as some tool matched and its schema fits the
    budget, at least one tool is offered: one that is too large is passed over for the next best.
    When none fits, ``offered`` is empty, the cards that fit are there, and a warning is logged that
    names the budget needed. The cards of the shortlist go before further schemas (``pack``).

    What the stages read is an index (``Survivors.index``). It is made at the first query about a
    library, in about 0.1 CPU s for a thousand tools and in a thread of its own, and later
    snapshots bring it up to date by what changed; send one query at start-up where the first user
    must not wait for it. Nothing here has a deadline of its own: a planner, an embedder or a ranker
    that may hang needs one (models have it), or ``asyncio.timeout`` around the retrieval.

    Args:
        stages: What to run, in order; by default ``default_stages(shortlist)``.
        planner: Splits a query into steps; the stages run for each of them, and the results take
            turns. None searches the query as it is.
        shortlist: Most tools to name.
        offer: Most tools to give in full.
        token_budget: Most tokens that cards and full schemas may cost together.
        count_tokens: Counts the tokens of a text; by default the estimate of four bytes each.
        fall_back: Search the request as it is when no step of a plan found a tool.

    Raises:
        UsageError: No stages, a number below 1, or a negative budget.

    Example:
        >>> import asyncio
        >>> from agentkit.tools.definition import ToolDefinition
        >>> library = Library([
        ...     ToolDefinition.from_schema("get_weather", "Weather in a city.", {}),
        ...     ToolDefinition.from_schema("send_mail", "Send a mail to a person.", {}),
        ... ])
        >>> found = asyncio.run(CascadeRetriever().retrieve("Mail this to Ann", library))
        >>> [definition.name for definition in found.offered]
        ['send_mail']
    """

    def __init__(
        self,
        *,
        stages: Sequence[Stage] | None = None,
        planner: Planner | None = None,
        shortlist: int = 32,
        offer: int = 5,
        token_budget: int = 1600,
        count_tokens: TokenCounter = estimate_tokens,
        fall_back: bool = True,
    ) -> None:
        if stages is not None and not stages:
            raise UsageError("stages is empty; leave it out to get default_stages()")
        if shortlist < 1 or offer < 1 or token_budget < 0:
            raise UsageError(
                f"shortlist={shortlist} and offer={offer} must be at least 1, "
                f"token_budget={token_budget} at least 0"
            )
        self.stages = tuple(stages or default_stages(shortlist))
        self._planner = planner
        self._card_tokens = CardTokens(count_tokens=count_tokens)
        self.channels = (
            self._card_tokens,
            *(channel for stage in self.stages for channel in getattr(stage, "channels", ())),
        )
        self._config = IndexConfig(channels=tuple(dict.fromkeys(self.channels)))
        self._shortlist = shortlist
        self._offer = offer
        self._budget = token_budget
        self._prices = PriceList(count_tokens)
        self._fall_back = fall_back

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Rank the library's tools for ``query`` and choose those to offer in full.

        A query that matches nothing gives an empty result.

        Raises:
            UsageError: A stage returned something else than survivors, or a planner something else
                than a plan. A planner that fails is a note.
        """
        start = await self._start(library)
        plan, reports = await self._plan(query, start)
        found = await self._searched(query, plan, start, reports)
        if self._fall_back and not any(one.hits for one in found) and _is_split(plan, query):
            plan = replace(identity_plan(query), usage=plan.usage, notes=(*plan.notes, _NOTHING))
            found = await self._searched(query, plan, start, reports)
        together = merged(found)
        started, worked = perf_counter(), thread_time()
        packed = self._packed(together)
        reports += _packing_reports(packed, perf_counter() - started, thread_time() - worked)
        return Retrieval(
            query=query,
            hits=packed.hits,
            offered=packed.offered,
            cards=packed.cards,
            tokens=packed.card_tokens + packed.schema_tokens,
            stages=tuple(reports),
            usage=plan.usage + together.usage,
            goals=plan.goals,
            notes=(*plan.notes, *together.notes),
            by_goal=_by_goal(plan, found),
            unmatched=unmatched_terms(query, start.index, start.index.channels),
        )

    async def _start(self, library: Library) -> Survivors:
        """All tools. An index that has to be made first takes long, so others run meanwhile."""
        if not library.has_derived(self._config):
            await asyncio.to_thread(library.derived, self._config)
        return Survivors.of(library, self._config.channels)

    async def _searched(
        self, query: str, plan: Plan, start: Survivors, reports: list[StageReport]
    ) -> list[Survivors]:
        """What the stages leave for each sub-goal; their reports are added to ``reports``."""
        found = []
        for goal in plan.goals:
            survivors, of_stages = await self._survivors(query, goal, start)
            found.append(survivors)
            reports += of_stages if len(plan.goals) == 1 else [_of(goal, one) for one in of_stages]
        return found

    async def _plan(self, query: str, start: Survivors) -> tuple[Plan, list[StageReport]]:
        """The sub-goals, with a report about planning if there is a planner."""
        if self._planner is None:
            return identity_plan(query), []
        started, worked = perf_counter(), thread_time()
        plan = await planned(self._planner, query, most=self._shortlist)
        spent = perf_counter() - started, thread_time() - worked
        return plan, [_report("planner", self._left(start), spent)]

    async def _survivors(
        self, query: str, goal: SubGoal, start: Survivors
    ) -> tuple[Survivors, list[StageReport]]:
        """What the stages leave for one sub-goal, with a report each."""
        survivors, left, reports = start, self._left(start), []
        for stage in self.stages:
            before, started, worked = survivors, perf_counter(), thread_time()
            survivors = await _run(stage, query, goal, before)
            spent = perf_counter() - started, thread_time() - worked
            if survivors.mask is not before.mask:
                left = self._left(survivors)
            reports.append(_report(stage_name(stage), left, spent))
        return survivors, reports

    def _left(self, survivors: Survivors) -> tuple[int, int]:
        """How many tools are left, and what their cards cost."""
        return len(survivors), self._card_tokens.total(survivors.index, survivors.mask)

    def _packed(self, survivors: Survivors) -> Packed:
        packed = pack(
            survivors,
            shortlist=self._shortlist,
            offer=self._offer,
            token_budget=self._budget,
            prices=self._prices,
        )
        if survivors.hits and not packed.offered:
            self._warn_that_nothing_fits(survivors)
        return packed

    def _warn_that_nothing_fits(self, survivors: Survivors) -> None:
        best = survivors.hits[0].definition
        logger.warning(
            "no tool is offered: %d matched, but none fits the token budget of %d; the best, %r, "
            "needs %d. Raise token_budget or shorten the definition",
            len(survivors.hits),
            self._budget,
            best.name,
            self._prices.schema(best),
        )


def default_stages(
    keep: int = 32, *, embedder: object | None = "auto", rankers: Sequence[Ranker] = ()
) -> tuple[Stage, ...]:
    """The stages that run when none are given.

    Tools called by name, then how the types of the step fit, then tools whose worked examples are
    like the request, then words and meaning, and the tools that give what the best ones need; what
    the step surely breaks drops out, and at last tools that say the same are put behind others,
    and composites and their parts in order. A stage that finds nothing to go by, as with a step
    without types or a library without examples, costs next to nothing.

    Args:
        keep: How many tools the ranking keeps.
        embedder: What compares meanings, see ``Description``: by default static word vectors where
            the extra ``vectors`` is installed.
        rankers: Score the best tools once more, see ``Description``.
    """
    return (
        ExactName(),
        Signature(),
        Examples(keep=keep),
        Description(keep=keep, cut=False, embedder=embedder, rankers=rankers),
        References(keep=keep),
        Specification(),
        NearDuplicates(),
        Abstraction(),
    )


def default_retriever() -> CascadeRetriever:
    """The retriever behind ``Agent(retriever="auto")``."""
    return CascadeRetriever()


def stage_name(stage: Stage) -> str:
    """What reports call a stage: its ``name``, else the name of the function or of the class."""
    name = getattr(stage, "name", None) or getattr(stage, "__name__", None)
    return str(name or type(stage).__name__)


async def _run(stage: Stage, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
    returned: object = stage(query, goal, survivors)
    if inspect.isawaitable(returned):
        returned = await returned
        if isinstance(returned, Survivors):
            return returned
    raise UsageError(
        f"the stage {stage_name(stage)!r} gave {type(returned).__name__}, but a stage is an async "
        "function that returns the survivors: write `async def`, and end it with "
        "`return survivors` or with one of the methods of Survivors"
    )


def _report(name: str, left: tuple[int, int], spent: tuple[float, float]) -> StageReport:
    survivors, tokens = left
    seconds, cpu_seconds = spent
    return StageReport(
        stage=name, survivors=survivors, tokens=tokens, seconds=seconds, cpu_seconds=cpu_seconds
    )


def _is_split(plan: Plan, query: str) -> bool:
    return plan.goals != (SubGoal(intent=query),)


def _by_goal(plan: Plan, found: Sequence[Survivors]) -> tuple[GoalTrace, ...]:
    if len(found) == 1:
        return ()
    return tuple(
        GoalTrace(intent=goal.intent, ranked=tuple(hit.definition.name for hit in survivors.hits))
        for goal, survivors in zip(plan.goals, found, strict=True)
    )


def _of(goal: SubGoal, report: StageReport) -> StageReport:
    return replace(report, goal=goal.intent)


def _packing_reports(packed: Packed, seconds: float, cpu: float) -> tuple[StageReport, StageReport]:
    shortlist = StageReport(
        stage="shortlist",
        survivors=len(packed.hits),
        tokens=packed.card_tokens,
        seconds=seconds,
        cpu_seconds=cpu,
    )
    offer = StageReport(
        stage="offer", survivors=len(packed.offered), tokens=packed.schema_tokens, seconds=0.0
    )
    return shortlist, offer
