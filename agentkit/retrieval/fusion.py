"""Putting different kinds of evidence into one score: the arithmetic of ``Description``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows

_EQUAL = 4
"""So many clauses count as much as the whole request: of n of them, the best counts n / (n + 4)."""

_WEAK_CLAUSE = 0.25
"""A clause that no tool fits well counts less: the power of how well its best tool fits it."""

_TOGETHER = 0.2
"""Several shared words say more than one rare word: the power of how many are shared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One kind of evidence about some candidates.

    Attributes:
        weight: How much it counts; all weights together make 1.
        scores: float32[texts, candidates], 0 and more: the whole request first, then its clauses.
    """

    weight: float
    scores: FloatRows


@dataclass(frozen=True, kw_only=True, slots=True)
class Fused:
    """The scores of some candidates.

    Attributes:
        total: float32[candidates], between 0 and 1; the best candidate has 1.
        fields: What each kind of evidence, and ``clauses``, adds to ``total``.
    """

    total: NDArray[np.float32]
    fields: Mapping[str, NDArray[np.float32]]


def fused(
    evidence: Mapping[str, Evidence], strength: NDArray[np.float32], factors: NDArray[np.float32]
) -> Fused:
    """The sum of what the evidence says, each kind divided by its highest score first.

    By score and not by rank: reciprocal-rank fusion loses eleven points of recall@5 on a public
    catalogue. A request may want several tools, so the best clause counts beside the whole, and it
    counts more where there are more of them::

        F(text) = sum over kinds of weight * score / highest score
        C       = max over clauses of F(clause) / highest F(clause) * s ** 0.25
        total   = (1 - c) F(request) + c C, where c = n / (n + 4) for n clauses

    Args:
        evidence: By kind, over the same texts and candidates.
        strength: s, float32[texts]: how well the best tool fits each text, in the same unit; 0 in
            the first place counts as no difference between texts, and no clause has more than it.
        factors: float32[candidates], what each total is multiplied by.

    Example:
        >>> import numpy as np
        >>> words = Evidence(weight=1.0, scores=np.array([[4.0, 2.0], [0.0, 3.0]], np.float32))
        >>> one = np.ones(2, np.float32)
        >>> found = fused({"lexical": words}, one, one)  # 0.8, and 0.8 * 0.5 + 0.2 = 0.6
        >>> [f"{score:.2f}" for score in found.total]
        ['1.00', '0.75']
    """
    import numpy as np

    parts = {name: np.float32(one.weight) * _shares(one.scores) for name, one in evidence.items()}
    texts = np.stack(list(parts.values())).sum(axis=0)
    fields = {name: part[0] * factors for name, part in parts.items()}
    if len(texts) > 1:
        relative = np.ones(len(texts) - 1, np.float32)
        if strength[0] > 0:  # no clause counts for more than the whole
            relative = np.minimum(strength[1:], strength[0]) / strength[0]
        share = np.float32((len(texts) - 1) / (len(texts) - 1 + _EQUAL))
        best = (_shares(texts[1:]) * (relative**_WEAK_CLAUSE)[:, None]).max(axis=0)
        fields = {name: (1 - share) * one for name, one in fields.items()}
        fields["clauses"] = share * texts[0].max(initial=0.0) * best * factors
    total = np.stack(list(fields.values())).sum(axis=0)
    highest = total.max(initial=0.0) or np.float32(1)
    return Fused(
        total=total / highest, fields={name: one / highest for name, one in fields.items()}
    )


def together(scores: FloatRows, shared: FloatRows) -> FloatRows:
    """Lexical scores, raised for tools that share several words with a text.

    A sum of rarities lets one rare word, most often a name or a chance, outweigh two or three of
    what is wanted. On the development part of BFCL this puts the right tool first for 16 requests
    more and 5 less of 744; over all tools of four catalogues it adds a quarter of a point to
    recall@32. Requests for many things at once, in words alone, lose as much of recall@5.

    Args:
        scores: float32[texts, candidates].
        shared: float32[texts, candidates], how many different terms each candidate shares.

    Example:
        >>> import numpy as np
        >>> one_rare_word, two_words = [4.0, 3.6], [1.0, 2.0]
        >>> raised = together(np.array([one_rare_word]), np.array([two_words]))
        >>> [f"{score:.2f}" for score in raised[0]]
        ['4.00', '4.14']
    """
    raised: FloatRows = scores * shared**_TOGETHER
    return raised


def _shares(scores: FloatRows) -> FloatRows:
    """Each row divided by its highest number; a row of zeros stays."""
    highest = scores.max(axis=1, initial=0.0, keepdims=True)
    highest[highest == 0] = 1
    shares: FloatRows = scores / highest
    return shares
