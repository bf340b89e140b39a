"""Whether two texts mean the same, as far as vectors or shared terms tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentkit.retrieval.words import terms

if TYPE_CHECKING:
    from agentkit.retrieval.embedders import Embedder

LEXICAL_PROXY = "lexical proxy: cosine of term counts"
"""What a similarity is called that no vectors were installed for."""


def similarities(
    pairs: Sequence[tuple[str, str]], embedder: Embedder | None = None
) -> list[float | None]:
    """How alike two texts of each pair are in meaning: the cosine of their vectors.

    ToolDNA (section 4.4) reports a cosine of .9400 by a BCE embedding. Cosines of different models
    can not be compared with each other, only revisions under one model.

    Without an embedder this is a proxy, ``LEXICAL_PROXY``: the cosine of the counts of search terms
    (``agentkit.retrieval.words``). It takes a synonym for a change of meaning. Neither sees
    a negation: *open* and *not open* are nearly the same text to both.

    Args:
        pairs: Texts to compare; equal ones are not embedded twice.
        embedder: Turns texts into vectors; None for the proxy.

    Returns:
        For each pair a number of -1 to 1 (the proxy: 0 to 1), 1 for equal texts, and None where
        nothing is known of one of two different texts.

    Example:
        >>> similarities([("used cars", "used car"), ("cars", "vehicles"), ("cars", "")])
        [1.0, 0.0, None]
    """
    texts = list(
        dict.fromkeys(text for one, other in pairs if one != other for text in (one, other))
    )
    if not texts:
        return [1.0] * len(pairs)
    place = {text: at for at, text in enumerate(texts)}
    unequal = [(place[one], place[other]) for one, other in pairs if one != other]
    found = iter(
        _lexical(texts, unequal) if embedder is None else _vector(texts, unequal, embedder)
    )
    return [1.0 if one == other else next(found) for one, other in pairs]


def _lexical(texts: Sequence[str], pairs: Sequence[tuple[int, int]]) -> list[float | None]:
    counts = [Counter(terms(text)) for text in texts]
    return [_count_cosine(counts[one], counts[other]) for one, other in pairs]


def _count_cosine(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    lengths = sum(n * n for n in one.values()) * sum(n * n for n in other.values())
    if not lengths:
        return None
    inner = sum(count * other.get(term, 0) for term, count in one.items())
    return min(1.0, inner / math.sqrt(lengths))


def _vector(
    texts: Sequence[str], pairs: Sequence[tuple[int, int]], embedder: Embedder
) -> list[float | None]:
    import numpy as np

    rows = np.asarray(embedder.embed(texts), np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    found: list[float | None] = []
    for one, other in pairs:
        if not lengths[one] or not lengths[other]:
            found.append(None)
            continue
        cosine = float(rows[one] / lengths[one] @ (rows[other] / lengths[other]))
        found.append(max(-1.0, min(1.0, cosine)))
    return found
