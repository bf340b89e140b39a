"""``Description``: tools whose words and meaning fit what is looked for (L2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from agentkit.errors import UsageError
from agentkit.retrieval.clauses import clauses, shortened
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.fusion import Evidence, Fused, fused
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.lexical import FieldWeights, LexicalChannel
from agentkit.retrieval.index.vectors import VectorChannel
from agentkit.retrieval.rankers import Ranker, ranked_by
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.word_vectors import StaticEmbedder, packaged_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows

_WEIGHTS = {
    (): (1.0,),
    ("word_vectors",): (0.7, 0.3),
    ("model_vectors",): (0.6, 0.4),
    ("model_vectors", "word_vectors"): (0.5, 0.35, 0.15),
}
"""What words and each kind of vectors count, by which of them there are; chosen on development
splits, where a tenth more or less moves recall@5 by less than half a point."""

_BY_WORDS = 128
_BY_MEANING = 64
_BY_CLAUSE = 32
"""Candidates: the best so many by each kind of evidence; more do not change what is found."""

_FAINT = 0.25
"""A cosine that says nothing about a tool that shares no word with the request."""

_REMEMBERED = 256
_NO_VECTORS = (
    "word vectors are not installed, so descriptions were compared by their words alone; "
    'pip install "agentkit-evolve[vectors]"'
)


class Description:
    """Ranks by shared words and by meaning, the whole request and each of its clauses, and cuts.

    Candidates are the best by words (``LexicalChannel``) and the nearest by vectors
    (``VectorChannel``); ``fusion.fused`` makes one score of both. The best match adds 1. Tools that
    neither share a word nor mean anything like the request drop out, unless an earlier stage
    ranked them. The intent and the guessed argument names of the sub-goal are searched; of a text
    beyond 8,000 characters its two ends.

    Args:
        keep: How many tools go on to the next stage.
        embedder: ``auto`` takes static word vectors where the extra ``vectors`` is installed, and
            says in the trace where it is not. An embedding model (see ``as_embedder``) is taken
            beside these. None compares words alone.
        rankers: Score the ``keep`` best once more; each counts as much as words and vectors
            together.
        words: The channel of words, for settings of one's own.
        weights: How much each field of a definition counts, where ``words`` is not given.
    """

    name = "description"

    def __init__(
        self,
        *,
        keep: int = 32,
        embedder: Embedder | Literal["auto"] | object | None = "auto",
        rankers: Sequence[Ranker] = (),
        words: LexicalChannel | None = None,
        weights: FieldWeights | None = None,
    ) -> None:
        if keep < 1:
            raise UsageError(f"keep={keep} must be at least 1")
        self._keep = keep
        self._rankers = tuple(rankers)
        self._words = words or LexicalChannel(weights=weights or FieldWeights())
        self._vectors = _vector_channels(embedder)
        self._lacks_vectors = embedder == "auto" and not self._vectors
        self._weights = _WEIGHTS[tuple(self._vectors)]
        self._embedded = lru_cache(maxsize=_REMEMBERED)(_query)
        self.channels = (self._words, *self._vectors.values())

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` best matches among the survivors."""
        if self._lacks_vectors and _NO_VECTORS not in survivors.notes:
            survivors = survivors.note(_NO_VECTORS)
        if not len(survivors):
            return survivors
        intent = shortened(goal.intent)
        texts = (" ".join((intent, *goal.argument_names)), *clauses(intent))
        vectors = {name: await self._embed(name, texts) for name in self._vectors}
        rows, scores = self._scored(survivors, texts, vectors)
        ranked = self._added(survivors, texts[0], rows, scores)
        for ranker in self._rankers:
            ranked = await _reranked(ranked.best(self._keep), ranker, goal)
        return ranked.best(self._keep)

    async def _embed(self, name: str, texts: tuple[str, ...]) -> FloatRows:
        """The vectors of the texts; a model may wait for a server, so it gets a thread."""
        channel = self._vectors[name]
        if isinstance(channel.embedder, StaticEmbedder):
            return self._embedded(channel, texts)
        return await asyncio.to_thread(self._embedded, channel, texts)

    def _scored(
        self, survivors: Survivors, texts: Sequence[str], vectors: dict[str, FloatRows]
    ) -> tuple[NDArray[np.intp], Fused]:
        """Candidates by row, ascending, and their scores."""
        import numpy as np

        index, mask, factors = survivors.index, survivors.mask, survivors.factors
        words = np.stack([self._words.scores(index, self._words.query(text)) for text in texts])
        chosen = [index.row(hit.definition.name) for hit in survivors.hits]
        for at, scores in enumerate(words if factors is None else words * factors):
            chosen += [row for row, _ in index.top(scores, _BY_CLAUSE if at else _BY_WORDS, mask)]
        for name, channel in self._vectors.items():
            for at, vector in enumerate(vectors[name]):
                near, _ = channel.nearest(index, vector, _BY_CLAUSE if at else _BY_MEANING, mask)
                chosen += near.tolist()
        rows = np.unique(np.array([row for row in chosen if row is not None], np.intp))
        evidence = {"lexical": Evidence(weight=self._weights[0], scores=words[:, rows])}
        for (name, channel), weight in zip(self._vectors.items(), self._weights[1:], strict=True):
            cosines = np.maximum(channel.cosines(index, vectors[name], rows), 0)
            cosines[(cosines < _FAINT) & (words[:, rows] <= 0)] = 0
            evidence[name] = Evidence(weight=weight, scores=cosines)
        scale = np.ones(len(rows), np.float32) if factors is None else factors[rows]
        return rows, fused(evidence, words.max(axis=1), scale)

    def _added(
        self, survivors: Survivors, text: str, rows: NDArray[np.intp], scores: Fused
    ) -> Survivors:
        """The survivors with the scores of the best, and of all that an earlier stage ranked."""
        index = survivors.index
        names = [index.name(row) for row in rows.tolist()]
        before = {hit.definition.name for hit in survivors.hits}
        order = sorted(range(len(rows)), key=lambda at: (-scores.total[at], names[at]))
        best = [at for at in order if scores.total[at] > 0]
        best = [at for place, at in enumerate(best) if place < self._keep or names[at] in before]
        shared = self._words.matched(index, self._words.query(text), [int(rows[at]) for at in best])
        reasons = {names[at]: _reason(shared[int(rows[at])]) for at in best}
        for kind, values in scores.fields.items():
            added = {names[at]: float(values[at]) for at in best}
            survivors = survivors.add(added, reason=reasons, field=kind)
            reasons = {}
        return survivors


def _vector_channels(embedder: object) -> dict[str, VectorChannel]:
    """Channels by the kind of evidence that their vectors are, in the order of the weights."""
    if embedder is None:
        return {}
    static = packaged_embedder()
    channels = {} if static is None else {"word_vectors": VectorChannel(embedder=static)}
    if embedder == "auto":
        return channels
    model = as_embedder(embedder)
    if isinstance(model, StaticEmbedder):
        return {"word_vectors": VectorChannel(embedder=model)}
    return {"model_vectors": VectorChannel(embedder=model), **channels}


def _query(channel: VectorChannel, texts: tuple[str, ...]) -> FloatRows:
    vectors = channel.query(texts)
    vectors.flags.writeable = False
    return vectors


def _reason(shared: Sequence[str]) -> str:
    return "shares " + ", ".join(shared) if shared else "is close in meaning"


async def _reranked(survivors: Survivors, ranker: Ranker, goal: SubGoal) -> Survivors:
    candidates = [hit.definition for hit in survivors.hits]
    if not candidates:
        return survivors
    ranking = await ranked_by(ranker, goal, candidates)
    named = getattr(ranker, "name", None) or getattr(ranker, "__name__", None)
    name = str(named or type(ranker).__name__)
    for note in ranking.notes:
        survivors = survivors.note(note)
    return survivors.add(ranking.scores, reason=f"ranked by {name}", field=name).spent(
        ranking.usage
    )
