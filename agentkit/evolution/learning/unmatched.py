"""The words that users say and no tool has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.late_verdicts import with_late_verdicts
from agentkit.evolution.learning.private import private_part
from agentkit.evolution.learning.variety import words_of
from agentkit.library.library import Library
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmatchedWord:
    """A word that no tool has.

    Attributes:
        word: As a search term.
        episodes: How many requests say it.
        failed: How many of these did not go well.
        requests: Some of them, to read.
    """

    word: str
    episodes: int
    failed: int
    requests: tuple[str, ...]


def unmatched_words(
    episodes: Iterable[Episode], library: Library, *, least: int = 2, shown: int = 3
) -> tuple[UnmatchedWord, ...]:
    """The words of requests that stand in no text of any tool, the most frequent first.

    They say what users want in words that the catalogue does not have: a description to widen, or
    a tool that is missing. Numbers are left out, and what was passed on to a tool as an argument:
    that is data. So are words of requests that look private (``private_part``).

    Args:
        episodes: What happened, well or not; each request counts once. Records of shadow runs and
            views, which would judge a request by what no user saw, are left out.
        library: The tools, with what they have learned.
        least: Fewest requests that say a word.
        shown: Requests to show for each.

    Example:
        >>> from agentkit import ToolDefinition
        >>> library = Library([ToolDefinition.from_schema("weather", "Rain or sun in a city.", {})])
        >>> asked = ["Do I need an umbrella?", "Umbrella today?", "Will it rain?"]
        >>> said = [Episode(episode_id=str(at), request=one) for at, one in enumerate(asked)]
        >>> [(one.word, one.episodes) for one in unmatched_words(said, library)]
        [('umbrella', 2)]
    """
    known = vocabulary(library)
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    requests: dict[str, list[str]] = {}
    served = with_late_verdicts(episodes)
    asked = {episode.request: episode for episode in served if episode.request}
    for request, episode in asked.items():
        words = _asking(episode) - known
        if not words or private_part(request) is not None:
            continue
        counts.update(words)
        if not _went_well(episode):
            failed.update(words)
        for word in words:
            requests.setdefault(word, []).append(request)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(
        UnmatchedWord(
            word=word,
            episodes=counts[word],
            failed=failed[word],
            requests=tuple(requests[word][:shown]),
        )
        for word in ranked
        if counts[word] >= least
    )


def vocabulary(library: Library) -> frozenset[str]:
    """The search terms of all texts of all tools, those of learned queries included.

    Cost: a pass over all texts, about 0.1 CPU s for a thousand tools.
    """
    return frozenset(
        word
        for definition in library.definitions
        for text in _texts(definition)
        for word in terms(text)
    )


def _asking(episode: Episode) -> frozenset[str]:
    given = [call.arguments for call in episode.calls]
    words = words_of(episode.request, {str(at): value for at, value in enumerate(given)})
    return frozenset(word for word in words if not any(map(str.isdigit, word)))


def _went_well(episode: Episode) -> bool:
    if episode.verdict is not None:
        return episode.verdict.passed
    return episode.stop_reason == "finished"


def _texts(definition: ToolDefinition) -> Iterator[str]:
    description = definition.description
    yield definition.name
    yield definition.text
    yield from description.tags
    yield from description.parameters.values()
    yield from _names(definition.signature.parameters)
    yield from definition.specification.text
    for example in definition.examples:
        yield example.query


def _names(schema: Any) -> Iterator[str]:
    """The names of parameters at all depths, and the values that they are limited to."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                yield from map(str, properties)
            enum = part.get("enum")
            if isinstance(enum, list | tuple):
                yield from (value for value in enum if isinstance(value, str))
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
