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
from agentkit.retrieval.cards import TokenCounter, card, counted, estimate_tokens, schema_text
from agentkit.retrieval.cascade import CascadeRetriever
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.lexical import LexicalChannel
from agentkit.retrieval.plan_parser import MAX_STEPS
from agentkit.retrieval.retriever import Hit, Retrieval, Retriever, SubGoal
from agentkit.retrieval.vectors import VectorChannel
from agentkit.retrieval.word_vectors import StaticEmbedder, packaged_embedder
from agentkit_bench.paper_judge import RANK_DESCRIPTIONS, ModelJudge, Ranked
from agentkit_bench.paper_retrieval import TypedDagRetriever
from agentkit_bench.text_hierarchy import text_hierarchy


class Dense:
    """A stage that ranks by the cosine of vectors alone, and cuts. Every tool is compared.

    Args:
        embedder: From texts to vectors.
        keep: How many tools it keeps.
    """

    name = "dense"

    def __init__(self, embedder: Embedder, *, keep: int = 32) -> None:
        self._vectors = VectorChannel(embedder=embedder)
        self._keep = keep
        self.channels = (self._vectors,)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the ``keep`` nearest tools; ties go by name."""
        import numpy as np

        index = candidates.index
        rows = np.flatnonzero(index.alive if candidates.mask is None else candidates.mask)
        wanted = self._vectors.query([goal.intent])
        cosines = np.zeros(index.size, np.float32)
        cosines[rows] = self._vectors.cosines(index, wanted, rows)[0]
        near = index.top(cosines, self._keep, candidates.mask)
        scores = {index.names[row]: cosine for row, cosine in near}
        return candidates.add(scores, reason="near in meaning", field="dense").best(self._keep)


class Words:
    """A stage that ranks by shared words alone (BM25 over fields), and cuts.

    Args:
        keep: How many tools it keeps.
    """

    name = "words"

    def __init__(self, *, keep: int = 32) -> None:
        self._words = LexicalChannel()
        self._keep = keep
        self.channels = (self._words,)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the ``keep`` best matches; ties go by name."""
        index = candidates.index
        scores = self._words.match(index, self._words.query(goal.intent)).scores()
        best = index.top(scores, self._keep, candidates.mask)
        return candidates.add({index.names[row]: score for row, score in best}).best(self._keep)


class HalfAndHalf:
    """The baseline that the default has to beat: BM25 over fields and static word vectors.

    Both are divided by the best value of the request and added. No clause is looked at, nothing is
    learned, and no setting depends on a corpus.

    Args:
        keep: How many tools it keeps.
    """

    name = "half and half"

    def __init__(self, *, keep: int = 32) -> None:
        self._words = LexicalChannel()
        self._vectors = VectorChannel(embedder=StaticEmbedder())
        self._keep = keep
        self.channels = (self._words, self._vectors)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the ``keep`` best; ties go by name."""
        import numpy as np

        index = candidates.index
        words = self._words.match(index, self._words.query(goal.intent)).scores()
        asked, rows = self._vectors.query([goal.intent]), np.arange(index.size)
        cosines = np.maximum(self._vectors.cosines(index, asked, rows)[0], 0)
        total = words / (words.max(initial=0) or 1) + cosines / (cosines.max(initial=0) or 1)
        best = index.top(total, self._keep, candidates.mask)
        return candidates.add({index.names[row]: score for row, score in best}).best(self._keep)


def flat_dense(
    embedder: Embedder,
    *,
    shortlist: int = 32,
    offer: int = 5,
    token_budget: int = 1600,
    count_tokens: TokenCounter = estimate_tokens,
) -> CascadeRetriever:
    """A retriever that ranks by vectors alone.

    Args:
        embedder: From texts to vectors.
        shortlist: Most tools to name.
        offer: Most tools to give in full.
        token_budget: Most tokens that cards and full schemas may cost together.
        count_tokens: Counts the tokens of a text.
    """
    return CascadeRetriever(
        stages=[Dense(embedder, keep=shortlist)],
        shortlist=shortlist,
        offer=offer,
        token_budget=token_budget,
        count_tokens=count_tokens,
    )


class FlatLibrary:
    """Gives every tool in full, in library order, until the budget is full.

    With a model the whole library is judged first, without types and without a shortlist: the
    paper's flat baseline, whose cost is C_flat. There is no cheaper stage before it, so each
    request pays for every description.

    Args:
        model: Ranks the tools; None leaves them in library order.
        token_budget: Most tokens of full schemas; None for no bound.
        prompt_budget: Most tokens of one prompt of the model.
        count_tokens: Counts the tokens of a text.

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
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        self._judge = (
            None
            if model is None
            else ModelJudge(model, token_budget=prompt_budget, count_tokens=count_tokens)
        )
        self._budget = token_budget
        self._count = count_tokens

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """As many tools as the budget holds."""
        started, worked = perf_counter(), thread_time()
        ranked = await self._ranked(query, library)
        offered, spent = [], 0
        for definition in ranked.order:
            price = counted(schema_text(definition), self._count)
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
            usage=ranked.cost.usage,
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
        "paper": "Algorithm 2 as written, a planner model judges L2, L3 and L4; needs a model",
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
    count_tokens: TokenCounter = estimate_tokens,
) -> Retriever:
    """One of ``VARIANTS``, ready to run.

    Args:
        name: Which.
        model: A chat model: the planner and judge of ``paper``, the judge of ``flat_library``, the
            planner of ``default``, the author of summaries of ``text_hierarchy``.
        embedder: Whatever ``as_embedder`` takes; by default the static vectors of the extra
            ``vectors``.
        shortlist: Most tools to name.
        offer: Most tools to give in full; in ``paper`` and ``flat_library`` the budget decides.
        token_budget: Most tokens that cards and full schemas may cost together.
        count_tokens: Counts the tokens of a text.

    Raises:
        UsageError: There is no such variant, or it lacks a model or an embedder.

    Example:
        >>> type(variant("flat_library")).__name__
        'FlatLibrary'
    """
    if name == "flat_library":
        return FlatLibrary(model=model, token_budget=token_budget, count_tokens=count_tokens)
    if name == "default":
        return TypedDagRetriever(
            planner=model, embedder="auto" if embedder is None else embedder, shortlist=shortlist,
            offer=offer, token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    if name == "paper":
        return TypedDagRetriever(
            "paper", planner=model, surface="survivors", shortlist=shortlist,
            offer=max(offer, MAX_STEPS), token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    if name == "flat_dense":
        return flat_dense(
            _embedder(embedder, name), shortlist=shortlist, offer=offer, token_budget=token_budget,
            count_tokens=count_tokens,
        )  # fmt: skip
    if name == "text_hierarchy":
        return text_hierarchy(
            _embedder(embedder, name), model=model, shortlist=shortlist, offer=offer,
            token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    raise UsageError(f"there is no variant {name!r}; use one of {', '.join(VARIANTS)}")


def _embedder(given: object | None, name: str) -> Embedder:
    known = packaged_embedder() if given is None else as_embedder(given)
    if known is None:
        raise UsageError(
            f"the variant {name!r} needs vectors: give an embedder, or install the static ones "
            'with pip install "agentkit-evolve[vectors]"'
        )
    return known
