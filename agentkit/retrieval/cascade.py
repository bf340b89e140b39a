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
from pathlib import Path
from time import perf_counter, thread_time

from agentkit.episodes import GoalTrace, StageReport
from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.retrieval.budget import Packed, PriceList, pack
from agentkit.retrieval.candidates import Candidates, Stage
from agentkit.retrieval.cards import TokenCounter, estimate_tokens
from agentkit.retrieval.examples import ExampleChannel, Examples
from agentkit.retrieval.in_hand import InHand
from agentkit.retrieval.index import IndexConfig, ToolIndex
from agentkit.retrieval.lexical import LexicalChannel
from agentkit.retrieval.planner import Plan, Planner, identity_plan, planned
from agentkit.retrieval.ranking import TextRanker, both_ends
from agentkit.retrieval.references import References
from agentkit.retrieval.retriever import Hit, Retrieval, Slot, SubGoal
from agentkit.retrieval.word_vectors import StaticEmbedder, TrainedVectors, installed_folder


def merged(found: Sequence[Candidates]) -> Candidates:
    """The candidates of all sub-goals; their hits take turns, the best of each first.

    A tool found for two steps stands where it is best. Scores stay what they were in their own
    ranking, so they do not fall from hit to hit.

    Args:
        found: At least one, of one library.
    """
    first = found[0]
    if len(found) == 1:
        return first
    masks = [candidates.mask for candidates in found if candidates.mask is not None]
    return replace(
        first,
        mask=reduce(or_, masks) if len(masks) == len(found) else None,
        hits=tuple(_in_turn([candidates.hits for candidates in found])),
        usage=reduce(add, (candidates.usage for candidates in found), Usage()),
        notes=tuple(dict.fromkeys(note for candidates in found for note in candidates.notes)),
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


def unmatched_terms(query: str, index: ToolIndex) -> tuple[str, ...]:
    """The first 64 terms of ``query`` that stand in no text of any tool, examples included.

    What users ask for and no tool speaks of is the first sign of a missing tool, or of a
    description in other words than theirs. Where no channel of the index reads words, no term is
    called unmatched.
    """
    words = next((one for one in index.channels if isinstance(one, LexicalChannel)), None)
    if words is None:
        return ()
    unknown: Sequence[str] = words.unknown(index, words.query(query))
    for channel in index.channels:
        if isinstance(channel, ExampleChannel):
            unknown = channel.unknown(index, unknown)
    return tuple(unknown[:_MOST])


logger = logging.getLogger(__name__)

_NOTHING = "no step of the plan found a tool; the request was searched as it is"


class CascadeRetriever:
    """Runs stages in order, then shows as much of what is left as the budget allows.

    The result holds at most ``shortlist`` tools, of which at most ``offer`` are given in full, and
    never costs more than ``token_budget``. As long as some tool matched and its schema fits the
    budget, at least one tool is offered: one that is too large is passed over for the next best.
    When none fits, ``offered`` is empty, the cards that fit are there, and a warning is logged that
    names the budget needed. The cards of the shortlist go before further schemas (``pack``).

    What the stages read is an index (``Candidates.index``). It is made at the first query about a
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
        examples: How many worked calls are shown with each tool in full: they cost tokens, too.

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
        examples: int = 0,
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
        channels = (one for stage in self.stages for one in getattr(stage, "channels", ()))
        self.channels = tuple(dict.fromkeys(channels))
        self._config = IndexConfig(channels=self.channels)
        self._shortlist = shortlist
        self._offer = offer
        self._budget = token_budget
        self._prices = PriceList(count_tokens, examples=examples)
        self._fall_back = fall_back

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Rank the library's tools for ``query`` and choose those to offer in full.

        A query that matches nothing gives an empty result.

        Raises:
            UsageError: As ``retrieve_next``.
        """
        return await self.retrieve_next(query, library, ())

    async def retrieve_next(
        self, query: str, library: Library, in_hand: Sequence[Slot]
    ) -> Retrieval:
        """The same for a later step of a run, which has values in hand.

        Args:
            query: What a tool is needed for.
            library: The library.
            in_hand: Values that a call can be given, see ``values_in_hand``. They are the
                inputs of every step for which no planner says others.

        Raises:
            UsageError: A stage returned something else than candidates, or a planner something else
                than a plan. A planner that fails is a note.
        """
        start = await self._start(library)
        clock = _Clock()
        whole, query = query, both_ends(query)  # megabytes of words would hold up everybody else
        plan, reports = await self._plan(query, start, clock)
        plan = _with_inputs(plan, tuple(in_hand))
        found = await self._searched(query, plan, start, reports, clock)
        if self._fall_back and not any(one.hits for one in found) and _is_split(plan, query):
            plan = replace(identity_plan(query), usage=plan.usage, notes=(*plan.notes, _NOTHING))
            plan = _with_inputs(plan, tuple(in_hand))
            found = await self._searched(query, plan, start, reports, clock)
        together = merged(found)
        packed = self._packed(together)
        reports += _packing_reports(packed, *clock.lap())
        return Retrieval(
            query=whole,
            hits=packed.hits,
            offered=packed.offered,
            cards=packed.cards,
            tokens=packed.card_tokens + packed.schema_tokens,
            stages=tuple(reports),
            usage=plan.usage + together.usage,
            goals=plan.goals,
            notes=(*plan.notes, *together.notes),
            by_goal=_by_goal(plan, found),
            unmatched=unmatched_terms(query, start.index),
        )

    async def _start(self, library: Library) -> Candidates:
        """All tools. An index that has to be made first takes long, so others run meanwhile."""
        if not library.has_derived(self._config):
            await asyncio.to_thread(library.derived, self._config)
        return Candidates.of(library, self._config.channels)

    async def _searched(
        self,
        query: str,
        plan: Plan,
        start: Candidates,
        reports: list[StageReport],
        clock: _Clock,
    ) -> list[Candidates]:
        """The candidates left for each sub-goal; the stages' reports are added to ``reports``."""
        found = []
        for goal in plan.goals:
            candidates, of_stages = await self._candidates(query, goal, start, clock)
            found.append(candidates)
            reports += of_stages if len(plan.goals) == 1 else [_of(goal, one) for one in of_stages]
        return found

    async def _plan(
        self, query: str, start: Candidates, clock: _Clock
    ) -> tuple[Plan, list[StageReport]]:
        """The sub-goals, with a report about planning if there is a planner."""
        if self._planner is None:
            return identity_plan(query), []
        plan = await planned(self._planner, query, most=self._shortlist)
        return plan, [_report("planner", len(start), clock.lap())]

    async def _candidates(
        self, query: str, goal: SubGoal, start: Candidates, clock: _Clock
    ) -> tuple[Candidates, list[StageReport]]:
        """The candidates left for one sub-goal, with a report of each stage."""
        candidates, reports = start, []
        for stage in self.stages:
            candidates = await _run(stage, query, goal, candidates)
            reports.append(_report(stage_name(stage), len(candidates), clock.lap()))
        return candidates, reports

    def _packed(self, candidates: Candidates) -> Packed:
        packed = pack(
            candidates,
            shortlist=self._shortlist,
            offer=self._offer,
            token_budget=self._budget,
            prices=self._prices,
        )
        if candidates.hits and not packed.offered:
            self._warn_that_nothing_fits(candidates)
        return packed

    def _warn_that_nothing_fits(self, candidates: Candidates) -> None:
        best = candidates.hits[0].definition
        logger.warning(
            "no tool is offered: %d matched, but none fits the token budget of %d; the best, %r, "
            "needs %d. Raise token_budget or shorten the definition",
            len(candidates.hits),
            self._budget,
            best.name,
            self._prices.schema(best),
        )


def default_stages(keep: int = 32, *, embedder: object | None = "auto") -> tuple[Stage, ...]:
    """The stages that run when none are given.

    Tools whose worked examples are like the request, tools that take what earlier calls gave, then
    words and meaning, and the tools that give what the best ones need. A stage stays here only as
    long as it earns its place on catalogues that its settings were not chosen on:
    docs/retrieval.md has the figures.

    Args:
        keep: How many tools the ranking keeps.
        embedder: What compares meanings, see ``TextRanker``: by default static word vectors where
            the extra ``vectors`` is installed. With trained ones the stage of examples is left
            out: they have learned from the same requests, and both together find less.
    """
    is_trained = isinstance(embedder, StaticEmbedder) and embedder.trained is not None
    return (
        *(() if is_trained else (Examples(keep=keep),)),
        InHand(keep=keep),
        TextRanker(keep=keep, cut=False, embedder=embedder),
        References(keep=keep),
    )


def default_retriever(
    *,
    vectors: Path | str | None = None,
    shortlist: int = 32,
    offer: int = 5,
    token_budget: int = 1600,
    examples: int = 0,
) -> CascadeRetriever:
    """The retriever behind ``Agent(retriever="auto")``.

    Args:
        vectors: A file of ``agentkit-train retriever``: word vectors that learned from requests.
        shortlist: As for ``CascadeRetriever``.
        offer: The same.
        token_budget: The same.
        examples: The same.

    Raises:
        UsageError: The file cannot be read as such.
        MissingExtraError: The word vectors that it changes are not installed.
    """
    embedder: object = "auto"
    if vectors is not None:
        embedder = StaticEmbedder(trained=TrainedVectors.read(vectors))
        installed_folder(f"default_retriever(vectors={str(vectors)!r})")
    return CascadeRetriever(
        stages=default_stages(shortlist, embedder=embedder),
        shortlist=shortlist,
        offer=offer,
        token_budget=token_budget,
        examples=examples,
    )


def stage_name(stage: Stage) -> str:
    """A stage's name in reports: its ``name``, else that of its function or class."""
    name = getattr(stage, "name", None) or getattr(stage, "__name__", None)
    return str(name or type(stage).__name__)


async def _run(stage: Stage, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
    returned: object = stage(query, goal, candidates)
    if inspect.isawaitable(returned):
        returned = await returned
        if isinstance(returned, Candidates):
            return returned
    raise UsageError(
        f"the stage {stage_name(stage)!r} gave {type(returned).__name__}, but a stage is an async "
        "function that returns the candidates: write `async def`, and end it with "
        "`return candidates` or with one of the methods of Candidates"
    )


class _Clock:
    """Times of what follows one another.

    Each boundary is read once: on some virtual machines reading CPU time takes 0.2 ms.
    """

    def __init__(self) -> None:
        self._at = perf_counter(), thread_time()

    def lap(self) -> tuple[float, float]:
        """Seconds, and seconds of this thread's CPU time, since the last one."""
        (started, worked), self._at = self._at, (perf_counter(), thread_time())
        return self._at[0] - started, self._at[1] - worked


def _report(name: str, left: int, spent: tuple[float, float]) -> StageReport:
    seconds, cpu_seconds = spent
    return StageReport(
        stage=name, survivors=left, tokens=0, seconds=seconds, cpu_seconds=cpu_seconds
    )


def _with_inputs(plan: Plan, in_hand: tuple[Slot, ...]) -> Plan:
    goals = (goal if goal.inputs else replace(goal, inputs=in_hand) for goal in plan.goals)
    return replace(plan, goals=tuple(goals)) if in_hand else plan


def _is_split(plan: Plan, query: str) -> bool:
    return [goal.intent for goal in plan.goals] != [query]


def _by_goal(plan: Plan, found: Sequence[Candidates]) -> tuple[GoalTrace, ...]:
    if len(found) == 1:
        return ()
    return tuple(
        GoalTrace(intent=goal.intent, ranked=tuple(hit.definition.name for hit in candidates.hits))
        for goal, candidates in zip(plan.goals, found, strict=True)
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
