"""``Description``: tools whose words and meaning fit what is looked for (L2)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

from agentkit.errors import UsageError
from agentkit.retrieval.asking import shortened
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.fusion import Evidence, Fused, fused, together
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.lexical import FieldWeights, LexicalChannel, Matches
from agentkit.retrieval.index.ranking import best_rows
from agentkit.retrieval.index.vectors import VectorChannel
from agentkit.retrieval.rankers import Ranker, ranked_by
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.word_vectors import StaticEmbedder, packaged_embedder
from agentkit.retrieval.words import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows


_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|(?<=[\u3002\uff01\uff1f\uff1b])"
    r"|\b(?:and then|then|also|finally|next|lastly|after that|afterwards|additionally|furthermore"
    r"|moreover)\b,?\s*",
    re.IGNORECASE,
)

_MOST = 8
_FEWEST_TERMS = 2
_LONGEST_END = 4_000
"""Characters of a text that are read at either end: in a very long one the request stands before
or behind what was pasted in."""


def clauses(text: str) -> tuple[str, ...]:
    """The sentences of a text, cut again at words such as *then* and *also*.

    Not a grammar: a clause that wants no tool does little harm, because ranking weighs a clause by
    how well some tool fits it. Cutting at every *and* or comma was tried and finds no more.

    Returns:
        At most eight, each with at least two different search terms; none when there is only one.

    Example:
        >>> clauses("Book a table in Rome. Then mail the address to Ann. Thanks!")
        ('Book a table in Rome.', 'mail the address to Ann.')
        >>> clauses("Book a table in Rome.")
        ()
    """
    parts = [part.strip() for part in _END.split(text)]
    found = [part for part in parts if part and len(set(terms(part))) >= _FEWEST_TERMS]
    return tuple(found[:_MOST]) if len(found) > 1 else ()


def both_ends(text: str) -> str:
    """The text without its middle when it is longer than eight thousand characters.

    Example:
        >>> len(both_ends("x" * 100_000)), both_ends("short")
        (8001, 'short')
    """
    if len(text) <= 2 * _LONGEST_END:
        return text
    return f"{text[:_LONGEST_END]}\n{text[-_LONGEST_END:]}"


_WEIGHTS = {
    (): (1.0,),
    ("word_vectors",): (0.7, 0.3),
    ("model_vectors",): (0.6, 0.4),
    ("model_vectors", "word_vectors"): (0.5, 0.35, 0.15),
}
"""What words and each kind of vectors count, by which of them there are; chosen on development
splits, where a tenth more or less moves recall@5 by less than half a point."""

_BY_WORDS = 128
_BY_MEANING = 32
"""Candidates: the best so many by shared words and by the meaning of the whole request. On the
development parts of four public catalogues twice as many, and the nearest to each clause besides,
found no tool more."""

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
        keep: How many tools it ranks.
        cut: Whether only these go on to the next stage; otherwise the others stay, unranked, for
            stages that find tools in another way.
        embedder: ``auto`` takes static word vectors where the extra ``vectors`` is installed, and
            says in the trace where it is not. An embedding model (see ``as_embedder``) is taken
            beside these. None compares words alone. A model that fails on a request has no say in
            it, and a note says so; one that fails on the tools makes no index, and raises.
        rankers: Score the ``keep`` best once more; each counts as much as words and vectors
            together. One that fails has no say, and a note says so.
        words: The channel of words, for settings of one's own.
        weights: How much each field of a definition counts, where ``words`` is not given.
    """

    name = "description"

    def __init__(
        self,
        *,
        keep: int = 32,
        cut: bool = True,
        embedder: Embedder | Literal["auto"] | object | None = "auto",
        rankers: Sequence[Ranker] = (),
        words: LexicalChannel | None = None,
        weights: FieldWeights | None = None,
    ) -> None:
        if keep < 1:
            raise UsageError(f"keep={keep} must be at least 1")
        self._keep = keep
        self._cut = cut
        self._rankers = tuple(rankers)
        self._words = words or LexicalChannel(weights=weights or FieldWeights())
        self._vectors = _vector_channels(embedder)
        self._lacks_vectors = embedder == "auto" and not self._vectors
        self._embedded = lru_cache(maxsize=_REMEMBERED)(_query)
        self.channels = (self._words, *self._vectors.values())

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` best matches among the survivors."""
        if self._lacks_vectors and _NO_VECTORS not in survivors.notes:
            survivors = survivors.note(_NO_VECTORS)
        if not len(survivors):
            return survivors
        intent = both_ends(goal.intent)
        texts = (" ".join((intent, *goal.argument_names)), *clauses(intent))
        vectors, notes = await self._vectors_of(texts)
        for note in notes:
            survivors = survivors.note(note)
        ranked = self._added(survivors, self._scored(survivors, texts, vectors))
        for ranker in self._rankers:
            ranked = await _reranked(ranked, ranker, goal, self._keep)
        return ranked.best(self._keep) if self._cut else ranked

    async def _vectors_of(self, texts: tuple[str, ...]) -> tuple[dict[str, FloatRows], list[str]]:
        """The vectors of the texts by kind; without a kind whose model fails, with a note."""
        vectors, notes = {}, []
        for name in self._vectors:
            try:
                vectors[name] = await self._embed(name, texts)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - any model may be plugged in; words remain
                notes.append(_failed("the embedder", error))
        return vectors, notes

    async def _embed(self, name: str, texts: tuple[str, ...]) -> FloatRows:
        """The vectors of the texts; a model may wait for a server, so it gets a thread."""
        channel = self._vectors[name]
        if isinstance(channel.embedder, StaticEmbedder):
            return self._embedded(channel, texts)
        return await asyncio.to_thread(self._embedded, channel, texts)

    def _scored(
        self, survivors: Survivors, texts: Sequence[str], vectors: Mapping[str, FloatRows]
    ) -> _Scored:
        """Candidates and how well they fit each text."""
        import numpy as np

        index = survivors.index
        terms = [self._words.query(text) for text in texts]
        matches = self._words.read(index, terms[0])
        rows = self._candidates(survivors, matches, vectors)
        shares = matches.contributions(rows)
        within = [[term in text for term in terms[0]] for text in terms]
        lexical = _sums(shares, within)
        agreeing = together(lexical, _sums(shares > 0, within))
        weights = _WEIGHTS[tuple(vectors)]
        evidence = {"lexical": Evidence(weight=weights[0], scores=agreeing)}
        for (name, asked), weight in zip(vectors.items(), weights[1:], strict=True):
            cosines = np.maximum(self._vectors[name].cosines(index, asked, rows), 0)
            cosines[(cosines < _FAINT) & (lexical <= 0)] = 0
            evidence[name] = Evidence(weight=weight, scores=cosines)
        scale = np.ones(len(rows), np.float32)
        if survivors.factors is not None:
            scale = survivors.factors[rows]
        return _Scored(
            rows=rows,
            fused=fused(evidence, lexical.max(axis=1, initial=0.0), scale),
            terms=tuple(terms[0]),
            shares=shares,
        )

    def _candidates(
        self, survivors: Survivors, matches: Matches, vectors: Mapping[str, FloatRows]
    ) -> NDArray[np.intp]:
        """Rows worth a closer look, ascending: the best by each kind, and those ranked before."""
        import numpy as np

        index, mask = survivors.index, survivors.mask
        if mask is None and len(index) < index.size:
            mask = index.alive
        scores = matches.scores()
        if survivors.factors is not None:
            scores *= survivors.factors
        chosen = [*best_rows(scores, _BY_WORDS, mask)]
        for name, asked in vectors.items():
            chosen.append(self._vectors[name].nearest(index, asked[0], _BY_MEANING, mask)[0])
        before = (index.row(hit.definition.name) for hit in survivors.hits)
        chosen.append(np.array([row for row in before if row is not None], np.intp))
        return np.unique(np.concatenate(chosen))

    def _added(self, survivors: Survivors, scored: _Scored) -> Survivors:
        """The survivors with the scores of the best, and of all that an earlier stage ranked."""
        index, total = survivors.index, scored.fused.total
        best = [row for row, _ in index.top_of(scored.rows, total, self._keep)]
        before = (index.row(hit.definition.name) for hit in survivors.hits)
        best += [row for row in before if row is not None]
        at = scored.rows.searchsorted(best).tolist()
        places = {
            index.name(row): place for row, place in zip(best, at, strict=True) if total[place] > 0
        }
        return survivors.add_kinds(scored.kinds(places), reason=scored.reasons(places))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scored:
    """Candidates and what speaks for them.

    Attributes:
        rows: int[candidates], rows of the index, ascending.
        fused: Their scores.
        terms: What was searched.
        shares: float32[terms, candidates], what each term adds to the lexical score.
    """

    rows: NDArray[np.intp]
    fused: Fused
    terms: tuple[str, ...]
    shares: FloatRows

    def kinds(self, places: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """By tool name what each kind of evidence adds, for candidates at some places."""
        import numpy as np

        table = np.stack(list(self.fused.fields.values()), axis=1)[list(places.values())].tolist()
        return {
            name: dict(zip(self.fused.fields, line, strict=True))
            for name, line in zip(places, table, strict=True)
        }

    def reasons(self, places: Mapping[str, int]) -> dict[str, str]:
        """By tool name why the candidate at a place is one, for people."""
        shared = (self.shares[:, list(places.values())] > 0).T.tolist()
        return {
            name: _reason([*compress(self.terms, flags)])
            for name, flags in zip(places, shared, strict=True)
        }


def _sums(shares: NDArray[Any], within: Sequence[Sequence[bool]]) -> FloatRows:
    """float32[texts, candidates]: the sum of the terms that each text has.

    Term by term: a product of matrices adds in an order that depends on the number of candidates
    and on the place of each, and tools that say the same would not tie.
    """
    import numpy as np

    sums = [shares[np.array(has, bool)].sum(axis=0, dtype=np.float32) for has in within]
    return np.stack(sums)


def _reason(shared: Sequence[str]) -> str:
    return "shares " + ", ".join(shared) if shared else "is close in meaning"


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


def _failed(what: str, error: Exception) -> str:
    return shortened(f"{what} failed, so it had no say: {type(error).__name__}: {error}", 300)


async def _reranked(survivors: Survivors, ranker: Ranker, goal: SubGoal, count: int) -> Survivors:
    """The survivors with what a ranker says of the ``count`` best."""
    candidates = [hit.definition for hit in survivors.hits[:count]]
    if not candidates:
        return survivors
    named = getattr(ranker, "name", None) or getattr(ranker, "__name__", None)
    name = str(named or type(ranker).__name__)
    try:
        ranking = await ranked_by(ranker, goal, candidates)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - any ranker may be plugged in; the order remains
        return survivors.note(_failed(f"the ranker {name}", error))
    for note in ranking.notes:
        survivors = survivors.note(note)
    return survivors.add(ranking.scores, reason=f"ranked by {name}", field=name).spent(
        ranking.usage
    )
