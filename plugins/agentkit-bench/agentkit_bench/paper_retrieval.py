"""``TypedDagRetriever``: CoCoDA's Algorithm 2 as the paper has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.models.base import ChatModel
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.cards import TokenCounter, estimate_tokens
from agentkit.retrieval.cascade import CascadeRetriever, stage_name
from agentkit.retrieval.plan_parser import MAX_STEPS
from agentkit.retrieval.planner import ModelPlanner, planned
from agentkit.retrieval.retriever import Retrieval, SubGoal
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.paper_judge import (
    CHECK_SPECIFICATIONS,
    RANK_DESCRIPTIONS,
    RANK_EXAMPLES,
    ModelJudge,
    Question,
)
from agentkit_bench.type_fit import SignatureTypes, signature_types, unify
from agentkit_bench.type_lattice import TypedSlot, TypeSet, named_type

Surface: TypeAlias = Literal["best", "survivors"]
"""What L4 leaves: ``best`` the one tool v* (Algorithm 2, line 9), ``survivors`` all of S3 in the
judge's order (section 3.2, where "the final set S4 is surfaced")."""


class TypeFilter:
    """L1: drops each tool whose signature does not unify with the typed sub-goal (line 6).

    A goal without types, and a tool that declares none, pass: undeclared is the top of the lattice.
    """

    name = "L1 signature"

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the tools that each typed slot of the goal can fit."""
        inputs = [slot for slot in map(TypedSlot.of, goal.inputs) if not slot.is_untyped]
        output = named_type(goal.output)
        if not inputs and output.is_any:
            return candidates
        return candidates.where(lambda definition: _unifies(inputs, output, definition))


_UNIFIES = 0.2
"""A lower fit means that two types exclude each other, or very likely do."""


def _unifies(inputs: Sequence[TypedSlot], output: TypeSet, definition: ToolDefinition) -> bool:
    types = _signature(definition)
    if not all(_taken(slot, types) >= _UNIFIES for slot in inputs):
        return False
    return unify(TypedSlot(type=output), types.output, is_output=True) >= _UNIFIES


def _taken(slot: TypedSlot, types: SignatureTypes) -> float:
    """How well a parameter takes a slot: the one of its name, else the best."""
    if slot.name in types.inputs:
        return unify(slot, types.inputs[slot.name])
    return max((unify(slot, one) for one in types.inputs.values()), default=1.0)


_signature = lru_cache(maxsize=16_384)(signature_types)


class SemanticScan:
    """L2: the judge ranks what is left by description; the ``keep`` best stay (line 7).

    Args:
        judge: Ranks.
        keep: k2, 32 in the paper.
    """

    name = "L2 description"

    def __init__(self, judge: ModelJudge, *, keep: int = 32) -> None:
        self._judge = judge
        self._keep = keep

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the best by the judge's order."""
        ranked = await self._judge.rank(RANK_DESCRIPTIONS, goal.intent, candidates.pool, self._keep)
        kept = ranked.order[: self._keep]
        left = _in_order(candidates, kept, "L2", "description").spent(ranked.usage)
        return _noted(left, self.name, ranked.notes)


class ConstraintCheck:
    """L3: the judge accepts or rejects by conditions; rejected tools drop out (line 8).

    A tool that declares no conditions has nothing that could fail, and costs nothing. When all
    are rejected the step has no tool, as in the paper; a note says so.

    Args:
        judge: Checks.
    """

    name = "L3 specification"

    def __init__(self, judge: ModelJudge) -> None:
        self._judge = judge

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Drop what the judge rejects."""
        checked = await self._judge.check(CHECK_SPECIFICATIONS, goal.intent, candidates.pool)
        left = candidates.spent(checked.usage)
        if checked.rejected:
            left = left.where(lambda definition: definition.name not in checked.rejected)
            if not len(left):
                left = left.note(f"{self.name}: every candidate was rejected, the step has no tool")
        return _noted(left, self.name, checked.notes)


class ExampleRerank:
    """L4: the judge ranks by worked examples; the best one is the step's tool (lines 9 and 10).

    Where no candidate has examples the order of L2 decides, at no cost. The graph features of line
    10 are look-ups in ``library.dag``, see docs/agentkit-bench.md.

    Args:
        judge: Ranks.
        surface: What is left, see ``Surface``.
    """

    name = "L4 examples"

    def __init__(self, judge: ModelJudge, *, surface: Surface = "best") -> None:
        self._judge = judge
        self._surface = surface

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Order what is left and keep the best."""
        ranked = await self._judge.rank(RANK_EXAMPLES, goal.intent, candidates.pool, 1)
        kept = ranked.order[:1] if self._surface == "best" else ranked.order
        left = _in_order(candidates, kept, "L4", "examples").spent(ranked.usage)
        return _noted(left, self.name, ranked.notes)


def _in_order(
    candidates: Candidates, order: Sequence[ToolDefinition], level: str, field: str
) -> Candidates:
    """Only the tools of ``order``, ranked so; scores fall from 1 and are added to those before.

    They are raised by as much as any tool has so far, so that the last level decides.
    """
    raised = max((hit.score for hit in candidates.hits), default=0.0)
    names = {definition.name for definition in order}
    left = candidates.where(lambda definition: definition.name in names)
    before = {hit.definition.name: hit.score for hit in left.hits}
    scores = {
        definition.name: raised + 1 - place / len(order) - before.get(definition.name, 0.0)
        for place, definition in enumerate(order)
    }
    reasons = {
        definition.name: f"{level}: {place} of {len(order)}"
        for place, definition in enumerate(order, start=1)
    }
    return left.add(scores, reason=reasons, field=field)


def _noted(candidates: Candidates, level: str, notes: Sequence[str]) -> Candidates:
    for note in notes:
        candidates = candidates.note(f"{level}: {note}")
    return candidates


_SHOWN_AT: dict[str, Question] = {
    SemanticScan.name: RANK_DESCRIPTIONS,
    ConstraintCheck.name: CHECK_SPECIFICATIONS,
    ExampleRerank.name: RANK_EXAMPLES,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """What one stage left of the tools, for one step.

    Attributes:
        stage: Its name.
        tools: Names of the tools still in the running, best first as far as they are ranked.
        evidence_tokens: The sum of c_l(v) over the tools that came in: what showing their record of
            this level to a model costs (section 3.2). 0 where no model is asked.
    """

    stage: str
    tools: tuple[str, ...]
    evidence_tokens: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cascade:
    """The nested sets of one step: S1, S2, S3, S4.

    Attributes:
        goal: The step.
        levels: One a stage, in order; each holds a part of the tools of the one before.
        notes: Fallbacks that were taken.
    """

    goal: SubGoal
    levels: tuple[Level, ...]
    notes: tuple[str, ...] = ()

    @property
    def evidence_tokens(self) -> int:
        """C_hier, the paper's cost of the cascade: the sum over its levels."""
        return sum(level.evidence_tokens for level in self.levels)


class TypedDagRetriever:
    """Finds tools for a request by Algorithm 2 of CoCoDA, as written.

    The planner model splits the request into typed steps. For each of them types prune hard (L1),
    the model ranks all that is left by description and ``k2`` stay (L2), checks conditions (L3) and
    reranks by examples (L4); the best tool of each step is found.

    Args:
        planner: The model that plans and judges.
        k2: How many tools L2 keeps; the paper's value.
        prompt_budget: W, most tokens of one prompt. More candidates than fit into it are ranked in
            a tournament.
        surface: ``best`` gives the best tool of each step (Algorithm 2), ``survivors`` all that L3
            accepted, in L4's order (section 3.2).
        shortlist: Most tools to name.
        offer: Most tools to give in full; by default one for each step of a plan.
        token_budget: Most tokens that cards and full schemas may cost together.
        count_tokens: Counts the tokens of a text.

    Raises:
        UsageError: No chat model, or a number out of range.

    Example:
        >>> import asyncio
        >>> from agentkit.testing import FunctionModel, sample_library
        >>> model = FunctionModel(lambda request: "[1]")  # plans nothing, likes the first tool
        >>> retriever = TypedDagRetriever(model)
        >>> found = asyncio.run(retriever.retrieve("Do I need an umbrella?", sample_library()))
        >>> [hit.definition.name for hit in found.hits]
        ['weather_now']
        >>> found.usage.requests
        3
    """

    def __init__(
        self,
        planner: ChatModel,
        *,
        k2: int = 32,
        prompt_budget: int = 4096,
        surface: Surface = "best",
        shortlist: int = 32,
        offer: int = MAX_STEPS,
        token_budget: int = 1600,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if not isinstance(planner, ChatModel):
            raise UsageError(
                "paper mode asks a planner model at L2, L3 and L4, but got "
                f"{type(planner).__name__}; pass a chat model"
            )
        if k2 < 1 or surface not in {"best", "survivors"}:
            raise UsageError(
                f"k2={k2} must be at least 1 and surface={surface!r} 'best' or 'survivors'"
            )
        judge = ModelJudge(planner, token_budget=prompt_budget, count_tokens=count_tokens)
        self._planner = ModelPlanner(planner, token_budget=prompt_budget, count_tokens=count_tokens)
        self._count = count_tokens
        self._shortlist = shortlist
        self._cascade = CascadeRetriever(
            stages=(
                TypeFilter(),
                SemanticScan(judge, keep=k2),
                ConstraintCheck(judge),
                ExampleRerank(judge, surface=surface),
            ),
            planner=self._planner,
            shortlist=shortlist,
            offer=offer,
            token_budget=token_budget,
            count_tokens=count_tokens,
            fall_back=False,  # in Algorithm 2 a step may have no tool
        )

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Find tools for ``query`` and choose those to offer in full.

        A model that fails or answers nonsense never makes this fail; ``Retrieval.notes`` says
        what was done instead.
        """
        return await self._cascade.retrieve(query, library)

    async def cascades(self, query: str, library: Library) -> tuple[Cascade, ...]:
        """Every set of candidates on the way, one ``Cascade`` a step; for study."""
        plan = await planned(self._planner, query, most=self._shortlist)
        return tuple([await self._cascade_of(query, goal, library) for goal in plan.goals])

    async def _cascade_of(self, query: str, goal: SubGoal, library: Library) -> Cascade:
        candidates, levels = Candidates.of(library), []
        for stage in self._cascade.stages:
            name, before = stage_name(stage), candidates
            candidates = await stage(query, goal, before)
            question = _SHOWN_AT.get(name)
            levels.append(
                Level(
                    stage=name,
                    tools=tuple(definition.name for definition in candidates.pool),
                    evidence_tokens=self._shown(question, before.pool) if question else 0,
                )
            )
        return Cascade(goal=goal, levels=tuple(levels), notes=candidates.notes)

    def _shown(self, question: Question, definitions: Sequence[ToolDefinition]) -> int:
        lines = filter(None, map(question.shown, definitions))
        return sum(self._count(line + "\n") for line in lines)
