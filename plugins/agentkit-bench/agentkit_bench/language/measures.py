"""Measures of how the words of a tool change: distance, likeness, variety, convergence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from agentkit.errors import UsageError
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence
from agentkit_bench.language.words import is_space, pieces, words

if TYPE_CHECKING:
    from agentkit.retrieval.embedders import Embedder


def texts_of(definition: ToolDefinition) -> dict[str, str]:
    """What a definition says in words, by field; empty fields are left out.

    These are L2 and the words of L3: the summary, the usage rules, the sentences of learned rules,
    each parameter's text, the conditions, the complexity and the tags. Names, types and allowed
    values are the contract and no language; examples are values. Parameters come in the order of
    the schema, so that another order of the same texts is no edit.

    Args:
        definition: The tool.

    Example:
        >>> lamp = ToolDefinition.from_schema(
        ...     "lamp",
        ...     "Switch a lamp.",
        ...     {"type": "object", "properties": {"room": {"description": "Which room."}}},
        ... )
        >>> texts_of(lamp)
        {'summary': 'Switch a lamp.', 'parameters.room': 'Which room.'}
    """
    return {field: text for field, text in _texts(definition) if text}


def _texts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    description, specification = definition.description, definition.specification
    yield "summary", description.summary
    yield "usage_rules", "\n".join(description.usage_rules)
    yield "rules", "\n".join(map(rule_sentence, specification.rules))
    order = {name: at for at, name in enumerate(definition.signature.properties)}

    def place(path: str) -> tuple[int, str]:
        top = path if path in order else path.split(".", 1)[0].split("[", 1)[0]
        return order.get(top, len(order)), path

    for path in sorted(description.parameters, key=place):
        yield f"parameters.{path}", description.parameters[path]
    yield "conditions", "\n".join(specification.text)
    yield "complexity", specification.complexity
    yield "tags", ", ".join(description.tags)


def levenshtein(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and replacements of items that make one of the other.

    Levenshtein's distance (1966), worked out by the bit-parallel method of Myers (Journal of the
    ACM 46(3), 1999) in the form of Hyyrö (2003): a whole column of the table is one integer. Python
    integers have no end, so texts of any length take one pass. Time grows with the square of the
    part that differs: 0.06 s for 10,000 characters without anything in common, 4 s for 100,000.
    RapidFuzz is faster; the core does without one more compiled dependency.

    Args:
        one: Items that can be compared: the characters of a text, or a list of words.
        other: The other items.

    Example:
        >>> levenshtein("kitten", "sitting"), levenshtein(["a", "b"], ["b"])
        (3, 1)
    """
    one, other = _different_middle(one, other)
    if len(one) < len(other):  # fewer steps over longer integers
        one, other = other, one
    if not other:
        return len(one)
    places: dict[Hashable, int] = {}
    for at, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << at
    everything, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    rises, falls, distance = everything, 0, len(one)  # down the column
    for item in other:
        equal = places.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        across_rises = falls | (everything & ~(diagonal | rises))
        across_falls = diagonal & rises
        distance += bool(across_rises & last) - bool(across_falls & last)
        across_rises = (across_rises << 1 | 1) & everything
        across_falls = across_falls << 1 & everything
        rises = across_falls | (everything & ~(diagonal | across_rises))
        falls = diagonal & across_rises
    return distance


def normalised_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """The distance as a share of the longer side: 0 for equal ones, 1 for nothing in common.

    ToolDNA (section 4.4, table 4) reports a "normalized Levenshtein edit distance" of .3811 between
    first and evolved metadata, and gives no formula. Of those in use we take the distance divided
    by the length of the longer side, as RapidFuzz does. This share is symmetric, but three texts
    may break the triangle inequality, so it tells how large one edit is and no more.

    Args:
        one: Items that can be compared.
        other: The other items.

    Example:
        >>> round(normalised_distance("kitten", "sitting"), 3)
        0.429
        >>> normalised_distance("", ""), normalised_distance("", "new")
        (0.0, 1.0)
    """
    longer = max(len(one), len(other))
    return levenshtein(one, other) / longer if longer else 0.0


def word_distance(before: str, after: str) -> float:
    """The normalised edit distance of two texts in words and marks; 0 also where only space moved.

    A word replaced by a longer one is one edit here, and in characters as many as it has letters.

    Args:
        before: A text.
        after: Another.

    Example:
        >>> word_distance("used cars", "used  vehicles")
        0.5
    """
    one, other = (
        [piece for piece in pieces(text) if not is_space(piece)] for text in (before, after)
    )
    return normalised_distance(one, other)


def _different_middle(
    one: Sequence[Hashable], other: Sequence[Hashable]
) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Both without the beginning and the end that they share, which cost nothing."""
    start = 0
    for start, (left, right) in enumerate(zip(one, other, strict=False)):  # noqa: B007
        if left != right:
            break
    else:
        start = min(len(one), len(other))
    one, other = one[start:], other[start:]
    end = 0
    while end < min(len(one), len(other)) and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[: len(one) - end], other[: len(other) - end]


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


WINDOW = 50
"""Words of the moving window, as Covington and McFall use for short texts."""


def type_token_ratio(tokens: Sequence[Hashable]) -> float | None:
    """Different words for each word: ``|types| / |tokens|``, in (0, 1]; None without words.

    ToolDNA (section 4.4) reports a fall from .2288 to .1953 and reads it as a more uniform
    vocabulary. The ratio falls with the length alone, though: a text said twice has half the ratio
    of the text said once, and vocabulary grows slower than text in any language (Heaps' law;
    Rosillo-Rodes et al., Physical Review Research 7(3), 2025, whom ToolDNA cites). Evolved texts
    are mostly longer, so a fall is no finding without ``moving_type_token_ratio`` beside it.

    Args:
        tokens: The words; ``words`` cuts a text into them.

    Example:
        >>> type_token_ratio("a rose is a rose".split())
        0.6
    """
    return len(set(tokens)) / len(tokens) if tokens else None


def moving_type_token_ratio(tokens: Sequence[Hashable], window: int = WINDOW) -> float | None:
    """The mean type-token ratio of all runs of ``window`` words, which length does not move.

    Covington and McFall, "Cutting the Gordian knot: the moving-average type-token ratio (MATTR)",
    Journal of Quantitative Linguistics 17(2), 2010. They leave open what a text shorter than the
    window has; here it has none, because its plain ratio could not be compared with the others.

    Args:
        tokens: The words.
        window: How many words each run has, 1 or more.

    Raises:
        UsageError: The window is smaller than 1.

    Example:
        >>> moving_type_token_ratio("a rose is a rose".split(), window=3)
        1.0
        >>> moving_type_token_ratio(["short"], window=3) is None
        True
    """
    if window < 1:
        raise UsageError(f"a window of {window} words holds nothing; give 1 or more")
    if len(tokens) < window:
        return None
    counts = Counter(tokens[:window])
    types = len(counts)
    for at in range(window, len(tokens)):
        leaving = tokens[at - window]
        counts[leaving] -= 1
        if not counts[leaving]:
            del counts[leaving]
        counts[tokens[at]] += 1
        types += len(counts)
    return types / (window * (len(tokens) - window + 1))


Trend = Literal["shrinking", "growing", "no trend", "too few"]

FEWEST_EDITS = 4
"""With three, even edits that shrink each time come by chance in one of six orders."""

_LEVEL = 0.05
_EXACT = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Convergence:
    """How the size of edits went over the rounds.

    Attributes:
        sizes: Normalised edit distance of each round from the one before.
        tau: Kendall's rank correlation of size and round, -1 to 1; None for fewer than two rounds.
        p_shrinking: Chance that sizes in random order fall at least as clearly; None as for tau.
        p_growing: The same for rising.
        trend: ``shrinking`` or ``growing`` where that chance is at most 5%; ``too few`` below
            four rounds, which can not show it.
        returns: Rounds whose text had been there before an earlier round, which is oscillation.
    """

    sizes: tuple[float, ...]
    tau: float | None
    p_shrinking: float | None
    p_growing: float | None
    trend: Trend
    returns: int


def convergence(sizes: Sequence[float], texts: Sequence[str] = ()) -> Convergence:
    """Whether edits shrink (Mann-Kendall test) and texts oscillate.

    ToolDNA (section 4.4) says that "the magnitude of these updates decays across iterations" and
    that metadata converges "without oscillation", and gives no test. We take the rank test of Mann
    (Econometrica 13, 1945) and Kendall, which assumes no shape of the decay: exact for up to
    thirty rounds, the normal approximation with a correction of continuity above. It takes sizes
    for free of ties; ties make it careful rather than rash. Each direction is tested at 5% by
    itself, so that of texts without any trend one in ten is called one.

    Args:
        sizes: Size of each edit, in the order in which they were made.
        texts: The texts from the first on, one more than sizes; leave out where returns do not
            matter.

    Example:
        >>> convergence([0.5, 0.3, 0.2, 0.05]).trend, convergence([0.2, 0.1]).trend
        ('shrinking', 'too few')
        >>> convergence([0.5, 0.5], ["a", "b", "a"]).returns
        1
    """
    rises = sum((b > a) - (b < a) for a, b in combinations(sizes, 2))
    pairs = len(sizes) * (len(sizes) - 1) // 2
    shrinking = at_most(rises, len(sizes)) if pairs else None
    growing = at_most(-rises, len(sizes)) if pairs else None
    return Convergence(
        sizes=tuple(sizes),
        tau=rises / pairs if pairs else None,
        p_shrinking=shrinking,
        p_growing=growing,
        trend=_trend(len(sizes), shrinking, growing),
        returns=_returns(texts),
    )


def at_most(score: int, rounds: int) -> float:
    """Chance that Kendall's score of so many rounds in random order is at most ``score``.

    The score is the number of pairs of rounds of which the later is larger, less those of which it
    is smaller.
    """
    if rounds > _EXACT:
        spread = math.sqrt(rounds * (rounds - 1) * (2 * rounds + 5) / 18)
        return 0.5 * (1 + math.erf((score + 1) / spread / math.sqrt(2)))
    orders = [1]  # number of orders by pairs in falling order (Mahonian numbers)
    for length in range(2, rounds + 1):
        wider = [0] * (len(orders) + length - 1)
        for at, count in enumerate(orders):
            for shift in range(length):
                wider[at + shift] += count
        orders = wider
    pairs = rounds * (rounds - 1) // 2
    fewest_falling = -((score - pairs) // 2)  # score = pairs - 2 * falling
    return sum(orders[max(0, fewest_falling) :]) / math.factorial(rounds)


def _trend(rounds: int, shrinking: float | None, growing: float | None) -> Trend:
    if rounds < FEWEST_EDITS or shrinking is None or growing is None:
        return "too few"
    if shrinking <= _LEVEL:
        return "shrinking"
    return "growing" if growing <= _LEVEL else "no trend"


def _returns(texts: Sequence[str]) -> int:
    seen: set[str] = set()
    returns = 0
    for before, text in zip(["", *texts], texts, strict=False):
        returns += text in seen and text != before
        seen.add(text)
    return returns


DEPTH_PROXY = "proxy: sentence length and prepositions, no parser"
"""What a depth is called that no parser gave."""

_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?![a-z])|(?<=[\u3002\uff01\uff1f])|\n+"
)

_WORDS = """
about after against among as at based before between by during for from in including into of
on over per since than through to under until via using with within without
"""
_PREPOSITIONS = frozenset(_WORDS.split())


def sentence_depths(text: str) -> list[float]:
    """The depth of each sentence of a text, by ``depth_proxy``; empty for a text without words.

    ToolDNA (section 4.4, table 4) reports a "syntactic tree depth" of 8 before and 7 after, found
    with Stanza, and does not say of which trees, nor whether this is the largest or a mean. Here no
    parser is asked; the report gives both the largest depth and the mean.

    Example:
        >>> [round(depth, 1) for depth in sentence_depths("List cars. Give the city of sale.")]
        [1.6, 2.8]
    """
    return [depth_proxy(sentence) for sentence in sentences(text)]


def depth_proxy(sentence: str) -> float:
    """A stand-in for the depth of a sentence where there is no parser.

    It is ``log2(n + 1)``, the levels of the flattest binary tree of its ``n`` words, and a quarter
    for each English preposition, which hangs one phrase below another. Over 3,337 sentences of
    public tool descriptions it orders them much as the dependency trees of spaCy's
    ``en_core_web_sm`` 3.8 do (Spearman's rank correlation .80), and little more than their length
    does by itself (.78); among sentences of 8 to 14 words it is .43, against .36. It lies 1.4 below
    the trees in the mean. Counts of subordinate clauses and brackets were tried and made it worse.
    So a difference of the proxy says that sentences got longer or shorter, and hardly more.

    Args:
        sentence: One sentence.

    Example:
        >>> depth_proxy("List the cars"), depth_proxy("List the cars in town")
        (2.0, 2.834962500721156)
    """
    said = words(sentence)
    return math.log2(len(said) + 1) + sum(word in _PREPOSITIONS for word in said) / 4


def sentences(text: str) -> list[str]:
    """The sentences of a text that hold a word; a line break ends one, a small letter goes on.

    Example:
        >>> sentences("Rates, e.g. for loans. 查询天气。请给出城市。")
        ['Rates, e.g. for loans.', '查询天气。', '请给出城市。']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if words(part)]
