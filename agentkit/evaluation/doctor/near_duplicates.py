"""Finding tools that are the same tool, or almost, without comparing all with all.

Each tool is a set of features: words of its description and pairs of neighbouring words, words of
its name, its parameters. A feature weighs as much as it is rare (inverse document frequency), so
two tools that differ in the one word that matters are told apart. Likeness is the weighted Jaccard
index: the weight of what both have over the weight of what either has.

Two sets whose likeness reaches t share at least one feature among the rarest of each: those that
make up the first 1 - t of its weight. So only these are indexed (prefix filtering: Chaudhuri,
Ganti, Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE 2006; Xiao et
al., "Efficient similarity joins for near duplicate detection", WWW 2008). Tools with the same
features are one tool here, so ten thousand copies cost no more than one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentkit.retrieval.cards import first_sentence
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

MIN_LIKENESS = 0.8
"""Weighted Jaccard index from which two tools count as almost the same."""

_NEIGHBOURS = 50
"""Most earlier tools that a tool is compared with by one feature: bounds the work where thousands
of tools differ in a word each, at the price of finding them in several groups."""

Features = frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateGroup:
    """Tools that are the same, or almost.

    Attributes:
        tools: Their names, in order; at least two.
        likeness: The least likeness of a pair that was found; 1 when all have the same features.
        are_siblings: Whether each has a word in its name and in its first sentence that another
            lacks: they were made from one template, for different things.
    """

    tools: tuple[str, ...]
    likeness: float
    are_siblings: bool = False


def near_duplicates(
    definitions: Iterable[ToolDefinition], *, min_likeness: float = MIN_LIKENESS
) -> tuple[DuplicateGroup, ...]:
    """Groups of tools that are alike, ordered by their first name.

    Args:
        definitions: Tools of different names.
        min_likeness: The likeness from which two count as alike.

    Example:
        >>> weather = {"properties": {"city": {"type": "string"}}}
        >>> near_duplicates([
        ...     ToolDefinition.from_schema("weather", "The weather in a city.", weather),
        ...     ToolDefinition.from_schema("get_weather", "The weather in a city", weather),
        ...     ToolDefinition.from_schema("send_mail", "Send a mail to a person.", {}),
        ... ], min_likeness=0.6)[0].tools
        ('get_weather', 'weather')
    """
    by_features: dict[Features, list[ToolDefinition]] = {}
    for definition in definitions:
        by_features.setdefault(features(definition), []).append(definition)
    kinds = [sorted(group, key=lambda one: one.name) for group in by_features.values()]
    kinds.sort(key=lambda group: group[0].name)
    same, siblings = _Links(), _Links()
    for first, second, likeness in _alike([features(group[0]) for group in kinds], min_likeness):
        apart = _are_told_apart(kinds[first][0], kinds[second][0])
        (siblings if apart else same).join(first, second, likeness)
    names = [tuple(one.name for one in group) for group in kinds]
    groups = [*_groups(names, same), *_groups(names, siblings, are_siblings=True)]
    return tuple(sorted(groups, key=lambda group: group.tools))


def features(definition: ToolDefinition) -> Features:
    """What a tool is compared by."""
    words = terms(definition.text)
    name = definition.origin.original_name or definition.name
    return frozenset(
        (
            *words,
            *(f"{first} {second}" for first, second in pairwise(words)),
            *(f"name:{word}" for word in terms(name)),
            *(f"parameter:{' '.join(terms(name))}" for name in definition.signature.properties),
        )
    )


def _groups(
    names: Sequence[tuple[str, ...]], links: _Links, *, are_siblings: bool = False
) -> Iterator[DuplicateGroup]:
    groups: dict[int, list[str]] = {}
    for at, group in enumerate(names):
        groups.setdefault(links.root(at), []).extend(group)
    for root, found in groups.items():
        if root in links.least or (len(found) > 1 and not are_siblings):
            yield DuplicateGroup(
                tools=tuple(sorted(found)),
                likeness=links.least.get(root, 1.0),
                are_siblings=are_siblings,
            )


def _are_told_apart(first: ToolDefinition, second: ToolDefinition) -> bool:
    """Whether a word of one's name and first sentence is nowhere in the other's."""
    (own_first, all_first), (own_second, all_second) = map(_words, (first, second))
    return bool(own_first - all_second) or bool(own_second - all_first)


def _words(definition: ToolDefinition) -> tuple[set[str], set[str]]:
    """The words that both name and first sentence have, and those that either has."""
    name = set(terms(definition.origin.original_name or definition.name))
    opening = set(terms(first_sentence(definition.description.summary)))
    return name & opening, name | opening


def _alike(sets: Sequence[Features], least: float) -> Iterator[tuple[int, int, float]]:
    """Pairs of sets whose likeness is at least ``least``."""
    counts = Counter(feature for found in sets for feature in found)
    weights = {feature: math.log(1 + len(sets) / count) for feature, count in counts.items()}
    index: dict[str, list[int]] = {}
    for at, found in enumerate(sets):
        candidates: set[int] = set()
        for feature in _prefix(found, weights, least):
            earlier = index.setdefault(feature, [])
            candidates.update(earlier[-_NEIGHBOURS:])
            earlier.append(at)
        for other in sorted(candidates):
            likeness = _likeness(found, sets[other], weights)
            if likeness >= least:
                yield other, at, likeness


def _prefix(found: Features, weights: Mapping[str, float], least: float) -> Iterator[str]:
    """The rarest features, up to the weight that two alike sets can not both leave out."""
    ordered = sorted(found, key=lambda feature: (-weights[feature], feature))
    rest = sum(weights[feature] for feature in ordered)
    needed = least * rest
    for feature in ordered:
        if rest < needed:
            return
        yield feature
        rest -= weights[feature]


def _likeness(first: Features, second: Features, weights: Mapping[str, float]) -> float:
    shared = sum(weights[feature] for feature in first & second)
    either = sum(weights[feature] for feature in first | second)
    return shared / either if either else 0.0


class _Links:
    """Which sets hang together (union-find), and the least likeness on the way."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self.least: dict[int, float] = {}

    def root(self, at: int) -> int:
        """What stands for the group of ``at``."""
        while at in self._above:
            at = self._above[at]
        return at

    def join(self, first: int, second: int, likeness: float) -> None:
        """Make one group of two."""
        low, high = sorted((self.root(first), self.root(second)))
        self.least[low] = min(self.least.get(low, 1.0), self.least.get(high, 1.0), likeness)
        if low != high:
            self._above[high] = low
