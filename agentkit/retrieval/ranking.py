"""``TextRanker``: tools whose words and meaning fit what is looked for (L2)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from agentkit.errors import UsageError
from agentkit.retrieval.asking import shortened
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.lexical import LexicalChannel, Matches
from agentkit.retrieval.retriever import SubGoal
from agentkit.retrieval.vectors import VectorChannel
from agentkit.retrieval.word_vectors import MEANING, StaticEmbedder, packaged_embedder
from agentkit.retrieval.words import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows

_OF_MODEL = 0.75
"""The embedding model's share of the meaning score when word vectors are used as well."""

_BY_WORDS = 128
_BY_MEANING = 32
"""Candidates: the best so many by shared words, and by the meaning of the request."""

_WITHOUT_MEANING = 0.2
"""The highest power of shared words where words decide alone."""

_EQUAL = 4
"""So many clauses count as much as the whole request: of n of them, the best counts n / (n + 4)."""

_WEAK_CLAUSE = 0.25
"""A clause that no tool fits well counts less: the power of how well its best tool fits it."""

_FAINT = 1.0
"""Spreads above the usual that a cosine must lie to say something of a tool without a shared
word."""

_PRIOR = 16
_USUAL_COSINE, _USUAL_SPREAD, _USUAL_LEXICAL = 0.08, 0.08, 0.12
"""A small catalogue does not tell what is usual: it counts as if it had so many tools more, with
the cosines, and the lexical scores as a share of the highest, that five catalogues have."""

_NAMED = 2.0
"""The gain of a tool that the request names: twice the best match's score."""

_REMEMBERED = 256
_NO_VECTORS = (
    "word vectors are not installed, so descriptions were compared by their words alone; "
    'pip install "agentkit-evolve[vectors]"'
)

_CLAUSE_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|(?<=[\u3002\uff01\uff1f\uff1b])"
    r"|\b(?:and then|then|also|finally|next|lastly|after that|afterwards|additionally|furthermore"
    r"|moreover)\b,?\s*",
    re.IGNORECASE,
)
_MOST_CLAUSES = 8
_FEWEST_TERMS = 2
_LONGEST_END = 4_000
"""Characters of a text that are read at either end: in a very long one the request stands before
or behind what was pasted in."""

_WORD = re.compile(r"[^\s`\"'(),;]+")
_LOOKS_LIKE_CODE = re.compile(r"[_.\-/:]|[a-z0-9][A-Z]")


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
    parts = [part.strip() for part in _CLAUSE_END.split(text)]
    found = [part for part in parts if part and len(set(terms(part))) >= _FEWEST_TERMS]
    return tuple(found[:_MOST_CLAUSES]) if len(found) > 1 else ()


def both_ends(text: str) -> str:
    """The text without its middle when it is longer than eight thousand characters.

    Example:
        >>> len(both_ends("x" * 100_000)), both_ends("short")
        (8001, 'short')
    """
    if len(text) <= 2 * _LONGEST_END:
        return text
    return f"{text[:_LONGEST_END]}\n{text[-_LONGEST_END:]}"


class TextRanker:
    """Ranks by shared words and by meaning, the whole request and each of its clauses.

    Words and vectors disagree in scale from catalogue to catalogue and from request to request, so
    each is measured against what is usual there: lexical scores in standard deviations over all
    tools, cosines in standard deviations above their mean. Where a request shares words with
    everything, or is alike to everything, that says little, and the other decides. With L and V so
    scaled, a text x, and s(x) the best F(x) as a share of that of the request, at most 1::

        F(x)  = (1 - w) L(x) + w V(x)
        C     = max over clauses of F(clause) / highest F(clause) * s(clause) ** 0.25
        total = (1 - c) F(request) / highest F(request) + c C,    c = n / (n + 4) for n clauses

    The best match adds 1. Candidates are the best by words and the nearest by meaning. Tools that
    neither share a word nor mean anything like the request are not ranked. A tool that the request
    calls by its name comes first. The intent and the guessed argument names of the sub-goal are
    searched; of a text beyond 8,000 characters its two ends.

    Args:
        keep: How many tools it ranks.
        cut: Whether only these pass to the next stage; otherwise the others stay, unranked, for
            stages that find tools in another way.
        embedder: ``auto`` takes static word vectors where the extra ``vectors`` is installed, and
            says in the trace where it is not. An embedding model (see ``as_embedder``) is taken
            beside these. None compares words alone. A model that fails on a request has no say in
            it, and a note says so; one that fails on the tools makes no index, and raises.
        meaning: w, how much vectors count beside words, where there are vectors; without it .65,
            or what the trained vectors of ``embedder`` say.
        together: Several shared words say more than one rare word: L is multiplied by the number
            of shared words to this power.

    Both numbers were chosen on four of five public catalogues at a time and reported on the fifth
    (docs/retrieval.md).
    """

    name = "text"

    def __init__(
        self,
        *,
        keep: int = 32,
        cut: bool = True,
        embedder: Embedder | Literal["auto"] | object | None = "auto",
        meaning: float | None = None,
        together: float = 0.5,
    ) -> None:
        if meaning is None:
            meaning = embedder.meaning if isinstance(embedder, StaticEmbedder) else MEANING
        if keep < 1 or not 0 <= meaning <= 1 or together < 0:
            raise UsageError(
                f"keep={keep} must be at least 1, meaning={meaning} between 0 and 1, and "
                f"together={together} not negative"
            )
        self._meaning = meaning
        self._together = together
        self._keep = keep
        self._cut = cut
        self._words = LexicalChannel()
        self._vectors = _vector_channels(embedder)
        self._lacks_vectors = embedder == "auto" and not self._vectors
        self._embedded = lru_cache(maxsize=_REMEMBERED)(_query)
        self.channels = (self._words, *self._vectors.values())

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Add to the scores of the ``keep`` best matches among the candidates."""
        if self._lacks_vectors and _NO_VECTORS not in candidates.notes:
            candidates = candidates.note(_NO_VECTORS)
        if not len(candidates):
            return candidates
        intent = both_ends(goal.intent)
        texts = (" ".join((intent, *goal.argument_names)), *clauses(intent))
        vectors, notes = await self._vectors_of(texts)
        for note in notes:
            candidates = candidates.note(note)
        ranked = self._ranked(candidates, texts, vectors)
        ranked = ranked.add(
            dict.fromkeys(_called(intent, candidates), _NAMED),
            reason="called by name",
            field="name",
        )
        return ranked.best(self._keep) if self._cut else ranked

    async def _vectors_of(self, texts: tuple[str, ...]) -> tuple[dict[str, FloatRows], list[str]]:
        """The vectors of the texts by kind; without a kind whose model fails, with a note."""
        vectors, notes = {}, []
        for name, channel in self._vectors.items():
            try:
                if isinstance(channel.embedder, StaticEmbedder):
                    vectors[name] = self._embedded(channel, texts)
                else:  # a model may wait for a server
                    vectors[name] = await asyncio.to_thread(self._embedded, channel, texts)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - any model may be plugged in; words remain
                failed = f"the embedder failed, so it had no say: {type(error).__name__}: {error}"
                notes.append(shortened(failed, 300))
        return vectors, notes

    def _ranked(
        self, candidates: Candidates, texts: Sequence[str], vectors: Mapping[str, FloatRows]
    ) -> Candidates:
        """The candidates with the scores of the best, and of all that an earlier stage ranked."""
        import numpy as np

        index = candidates.index
        matches, scores = self._lexical(candidates, texts)
        before = [index.row(hit.definition.name) for hit in candidates.hits]
        rows = self._looked_at(candidates, scores[0], vectors, before)
        weights = _weights(tuple(vectors), self._meaning)
        scaled = np.stack([_scaled(one, len(index))[rows] for one in scores])
        parts = {"lexical": weights[0] * scaled}
        for (name, queries), weight in zip(vectors.items(), weights[1:], strict=True):
            above = self._above_usual(name, candidates, queries, rows)
            above[(above < _FAINT) & (scaled <= 0)] = 0
            parts[name] = weight * above
        fields = _fused(parts)
        total = np.zeros(index.size)
        total[rows] = sum(fields.values())
        best = [row for row, _ in index.top(total, self._keep, candidates.mask)]
        best += [row for row in before if row is not None and total[row] > 0 and row not in best]
        at = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        return candidates.add_kinds(
            {
                index.names[row]: {kind: float(one[at[row]]) for kind, one in fields.items()}
                for row in best
            },
            reason={
                index.names[row]: "shares " + ", ".join(shared) if shared else "is close in meaning"
                for row, shared in zip(best, matches.shared(best), strict=True)
            },
        )

    def _lexical(
        self, candidates: Candidates, texts: Sequence[str]
    ) -> tuple[Matches, list[NDArray[np.float64]]]:
        """The terms of the request, and the lexical scores of all tools for each text."""
        queries = [self._words.query(text) for text in texts]
        matches = self._words.match(candidates.index, queries[0])
        of_clauses = (
            matches.of_terms([term in terms for term in matches.terms]) for terms in queries[1:]
        )
        together = self._together if self._vectors else min(self._together, _WITHOUT_MEANING)
        return matches, [one.scores(together) for one in (matches, *of_clauses)]

    def _looked_at(
        self,
        candidates: Candidates,
        lexical: NDArray[np.float64],
        vectors: Mapping[str, FloatRows],
        before: Sequence[int | None],
    ) -> NDArray[np.int64]:
        """Rows worth a closer look, ascending: the best by each kind, and those ranked before."""
        import numpy as np

        index, mask = candidates.index, candidates.mask
        chosen = [
            self._vectors[name].nearest(index, queries[0], _BY_MEANING, mask)
            for name, queries in vectors.items()
        ]
        by_words = [row for row, _ in index.top(lexical, _BY_WORDS, mask)]
        named = [row for row in before if row is not None]
        return np.unique(np.concatenate([*chosen, np.array([*by_words, *named], np.int64)]))

    def _above_usual(
        self, name: str, candidates: Candidates, queries: FloatRows, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """How far above what is usual in this catalogue each cosine is, in standard deviations."""
        import numpy as np

        channel, index = self._vectors[name], candidates.index
        mean, variance = channel.usual(index, queries)
        count = len(index)
        usual = (count * mean + _PRIOR * _USUAL_COSINE) / (count + _PRIOR)
        spread = np.sqrt((count * variance + _PRIOR * _USUAL_SPREAD**2) / (count + _PRIOR))
        above = (channel.cosines(index, queries, rows) - usual[:, None]) / spread[:, None]
        found: NDArray[np.float64] = np.maximum(above, 0)
        return found


def _scaled(scores: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Lexical scores of all tools in their standard deviation over the catalogue."""
    import numpy as np

    highest = scores.max(initial=0.0)
    if not highest:
        return scores
    variance = float(scores @ scores) / count - (float(scores.sum()) / count) ** 2
    prior = (_USUAL_LEXICAL * highest) ** 2
    spread = np.sqrt((count * variance + _PRIOR * prior) / (count + _PRIOR))
    scaled: NDArray[np.float64] = scores / np.round(spread, 6)  # the order of rows moves no score
    return scaled


def _fused(parts: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """The share of each kind of evidence, and of ``clauses``, in a total of at most 1.

    Args:
        parts: By kind, float[texts, candidates]: the whole request first, then its clauses.
    """
    import numpy as np

    texts = np.stack(list(parts.values())).sum(axis=0)
    strength = texts.max(axis=1, initial=0.0)
    highest = strength[0] or 1.0
    fields = {name: part[0] / highest for name, part in parts.items()}
    if len(texts) > 1:
        share = (len(texts) - 1) / (len(texts) - 1 + _EQUAL)
        strong = np.where(strength[1:] > 0, strength[1:], 1.0)
        weight = np.minimum(strong / highest, 1.0) ** _WEAK_CLAUSE
        best = (texts[1:] * (weight / strong)[:, None]).max(axis=0)
        fields = {name: (1 - share) * one for name, one in fields.items()}
        fields["clauses"] = share * best
    total = np.stack(list(fields.values())).sum(axis=0).max(initial=0.0) or 1.0
    return {name: one / total for name, one in fields.items()}


def _weights(kinds: tuple[str, ...], meaning: float) -> tuple[float, ...]:
    """The weights of words and of each kind of vectors."""
    if not kinds:
        return (1.0,)
    if len(kinds) == 1:
        return (1 - meaning, meaning)
    return (1 - meaning, meaning * _OF_MODEL, meaning * (1 - _OF_MODEL))


def _called(text: str, candidates: Candidates) -> list[str]:
    """Tools whose names the text writes as names: like code, or alone."""
    words = [word.strip(".?!:") for word in _WORD.findall(text)]
    named = [word for word in words if len(words) == 1 or _LOOKS_LIKE_CODE.search(word)]
    return [name for name in dict.fromkeys((text.strip(), *named)) if candidates.has(name)]


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
