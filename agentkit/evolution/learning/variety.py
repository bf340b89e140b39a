"""Choosing examples that differ in their words."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms

Words = frozenset[str]


def words_of(query: str, arguments: JsonObject) -> Words:
    """The words of a query that say what it wants: without numbers, and without what was passed on.

    "Rain in Rome?" and "Rain in Oslo?" ask the same of a tool that is called with the city.

    Example:
        >>> sorted(words_of("Will it rain in Rome on day 3?", {"city": "Rome", "day": 3}))
        ['day', 'rain']
        >>> sorted(words_of("Rome?", {"city": "Rome"}))
        ['rome']
    """
    words = frozenset(terms(query))
    given = {word for value in _texts(arguments) for word in terms(value)}
    asking = frozenset(word for word in words - given if not word.isdigit())
    return asking or words


def varied(candidates: Sequence[Words], known: Iterable[Words], count: int) -> list[int]:
    """Places of the candidates that add most words to those known, at most ``count``.

    Greedy: each time the one with the most new words, the earliest of several; what is left when
    none has new words follows in its order. Greedy choice covers at least 1 - 1/e of what the best
    choice of as many would (Nemhauser, Wolsey and Fisher 1978).

    Example:
        >>> queries = [{"rain"}, {"rain", "umbrella"}, {"sun"}]
        >>> varied([frozenset(query) for query in queries], [], 2)
        [1, 2]
    """
    covered = {word for words in known for word in words}
    waiting = [(-len(words - covered), place) for place, words in enumerate(candidates)]
    heapq.heapify(waiting)
    chosen: list[int] = []
    while waiting and len(chosen) < count:
        gain, place = heapq.heappop(waiting)
        now = -len(candidates[place] - covered)
        if now > gain:  # others took words from it since
            heapq.heappush(waiting, (now, place))
            continue
        covered |= candidates[place]
        chosen.append(place)
    return chosen


def _texts(value: object) -> Collection[str]:
    """The texts and numbers in JSON data, as text."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
        elif isinstance(part, str | int | float):
            texts.append(str(part))
    return texts
