"""The ablation *flat dense*: vectors alone, over the whole library."""

from __future__ import annotations

from agentkit.retrieval.cascade import CascadeRetriever
from agentkit.retrieval.embedders import Embedder
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.vectors import VectorChannel
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.tokens import TokenCounter, estimate_tokens


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

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` nearest tools; ties go by name."""
        import numpy as np

        index = survivors.index
        rows = np.flatnonzero(index.alive if survivors.mask is None else survivors.mask)
        wanted = self._vectors.query([goal.intent])
        cosines = np.zeros(index.size, np.float32)
        cosines[rows] = self._vectors.cosines(index, wanted, rows)[0]
        near = index.top(cosines, self._keep, survivors.mask)
        scores = {index.name(row): cosine for row, cosine in near}
        return survivors.add(scores, reason="near in meaning", field="dense").best(self._keep)


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
