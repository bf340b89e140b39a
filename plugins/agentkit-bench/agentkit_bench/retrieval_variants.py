"""``variant(name)``: the retrievers that are compared with each other, by name."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, thread_time
from types import MappingProxyType

from agentkit.episodes import StageReport
from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.models.base import ChatModel
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.cards import card, counted, estimate_tokens, schema_text
from agentkit.retrieval.cascade import CascadeRetriever, default_stages
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.lexical import LexicalChannel
from agentkit.retrieval.plan_parser import MAX_STEPS
from agentkit.retrieval.planner import ModelPlanner
from agentkit.retrieval.retriever import Hit, Retrieval, Retriever, SubGoal
from agentkit.retrieval.vectors import VectorChannel
from agentkit.retrieval.word_vectors import packaged_embedder
from agentkit_bench.paper_judge import RANK_DESCRIPTIONS, ModelJudge, Ranked
from agentkit_bench.paper_retrieval import TypedDagRetriever
from agentkit_bench.text_hierarchy import Hierarchy


class Flat:
    """A stage that compares every tool with the request, by words, vectors or both, and cuts.

    Words are BM25 over fields. Each part is divided by the best value of the request and the parts
    are added: both together are the baseline that the default has to beat. No clause is looked at,
    nothing is learned, and no setting depends on a corpus.

    Args:
        embedder: From texts to vectors; None compares words alone.
        words: Whether shared words count.
        keep: How many tools it keeps.
    """

    name = "flat"

    def __init__(self, embedder: Embedder | None, *, words: bool, keep: int = 32) -> None:
        self._vectors = None if embedder is None else VectorChannel(embedder=embedder)
        self._words = LexicalChannel() if words else None
        self._keep = keep
        self.channels = tuple(one for one in (self._words, self._vectors) if one is not None)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the ``keep`` best; ties go by name."""
        import numpy as np

        index = candidates.index
        total = np.zeros(index.size, np.float32)
        if self._words is not None:
            scores = self._words.match(index, self._words.query(goal.intent)).scores()
            total += scores / (scores.max(initial=0) or 1)
        if self._vectors is not None:
            asked, rows = self._vectors.query([goal.intent]), np.arange(index.size)
            cosines = np.maximum(self._vectors.cosines(index, asked, rows)[0], 0)
            total += cosines / (cosines.max(initial=0) or 1)
        best = index.top(total, self._keep, candidates.mask)
        return candidates.add({index.names[row]: score for row, score in best}).best(self._keep)


class FlatLibrary:
    """Gives every tool in full, in library order, until the budget is full.

    With a model the whole library is judged first, without types and without a shortlist: the
    paper's flat baseline, whose cost is C_flat. There is no cheaper stage before it, so each
    request pays for every description.

    Args:
        model: Ranks the tools; None leaves them in library order.
        token_budget: Most tokens of full schemas; None for no bound.
        prompt_budget: Most tokens of one prompt of the model.

    Example:
        >>> import asyncio
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> found = asyncio.run(FlatLibrary(token_budget=None).retrieve("anything", library))
        >>> len(found.offered) == len(library)
        True
    """

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        token_budget: int | None = 1600,
        prompt_budget: int = 4096,
    ) -> None:
        self._judge = None if model is None else ModelJudge(model, token_budget=prompt_budget)
        self._budget = token_budget

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """As many tools as the budget holds."""
        started, worked = perf_counter(), thread_time()
        ranked = await self._ranked(query, library)
        offered, spent = [], 0
        for definition in ranked.order:
            price = counted(schema_text(definition), estimate_tokens)
            if self._budget is not None and spent + price > self._budget:
                continue  # too large for what is left; a smaller one may fit
            offered.append(definition)
            spent += price
        report = StageReport(
            stage="flat library",
            survivors=len(offered),
            tokens=spent,
            seconds=perf_counter() - started,
            cpu_seconds=thread_time() - worked,
        )
        return Retrieval(
            query=query,
            hits=tuple(
                Hit(definition=definition, score=1 - place / len(offered))
                for place, definition in enumerate(offered)
            ),
            offered=tuple(offered),
            cards="\n".join(card(definition) for definition in offered),
            tokens=spent,
            stages=(report,),
            usage=ranked.usage,
            goals=(SubGoal(intent=query),),
            notes=ranked.notes,
        )

    async def _ranked(self, query: str, library: Library) -> Ranked:
        if self._judge is None:
            return Ranked(order=library.definitions)
        return await self._judge.rank(RANK_DESCRIPTIONS, query, library.definitions, 32)


VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "default": "the stages of this package; no model",
        "paper": "Algorithm 2, all that L3 accepts ranked; needs a model as planner and judge",
        "flat_library": "every schema until the budget is full; with a model judged first",
        "flat_dense": "vectors alone; needs an embedder",
        "text_hierarchy": "a tree of text summaries, descended by vectors; needs an embedder",
    }
)
"""What can be compared, and in a line what each is."""


def variant(
    name: str,
    *,
    model: ChatModel | None = None,
    embedder: object | None = None,
    shortlist: int = 32,
    offer: int = 5,
    token_budget: int = 1600,
) -> Retriever:
    """One of ``VARIANTS``, ready to run.

    Args:
        name: Which.
        model: A chat model: the planner and judge of ``paper``, the judge of ``flat_library``, the
            planner of ``default``.
        embedder: Whatever ``as_embedder`` takes; by default the static vectors of the extra
            ``vectors``.
        shortlist: Most tools to name.
        offer: Most tools to give in full; in ``paper`` and ``flat_library`` the budget decides.
        token_budget: Most tokens that cards and full schemas may cost together.

    Raises:
        UsageError: There is no such variant, or it lacks a model or an embedder.

    Example:
        >>> type(variant("flat_library")).__name__
        'FlatLibrary'
    """
    if name not in VARIANTS:
        raise UsageError(f"there is no variant {name!r}; use one of {', '.join(VARIANTS)}")
    if name == "flat_library":
        return FlatLibrary(model=model, token_budget=token_budget)
    if name == "paper":
        if model is None:
            raise UsageError("the variant 'paper' needs a model that plans and judges")
        return TypedDagRetriever(
            model,
            surface="survivors",
            shortlist=shortlist,
            offer=max(offer, MAX_STEPS),
            token_budget=token_budget,
        )
    if name == "default":
        known = "auto" if embedder is None else embedder
        stages = default_stages(shortlist, embedder=known)
    elif name == "flat_dense":
        stages = (Flat(_embedder(embedder, name), words=False, keep=shortlist),)
    else:
        stages = (Hierarchy(_embedder(embedder, name), keep=shortlist),)
    return CascadeRetriever(
        stages=stages,
        planner=ModelPlanner(model) if name == "default" and model is not None else None,
        shortlist=shortlist,
        offer=offer,
        token_budget=token_budget,
    )


def _embedder(given: object | None, name: str) -> Embedder:
    known = packaged_embedder() if given is None else as_embedder(given)
    if known is None:
        raise UsageError(
            f"the variant {name!r} needs vectors: give an embedder, or install the static ones "
            'with pip install "agentkit-evolve[vectors]"'
        )
    return known
