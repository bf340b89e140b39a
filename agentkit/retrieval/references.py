"""``References``: tools that give what the best tools need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.index import Inverted, Rows, ToolIndex, key_of
from agentkit.retrieval.retriever import Hit, SubGoal
from agentkit.tools.definition import ToolDefinition

_VERSION = 2
"""Raise it when ``name_words`` changes."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SMALL_WORDS = frozenset(["a", "an", "and", "by", "for", "from", "in", "of", "on", "the", "to"])
_SPACE = re.compile(r"\s")
_FEWEST_WORDS = 2
_MOST_WORDS = 8
_LONGEST_TEXT = 4_000
_MOST_SHARING = 3
"""Names of the same words beyond which a mention does not say which tool is meant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NameWordsChannel:
    """Finds tools that a text calls by name in other writing: ``Search Hotels``, ``searchHotels``.

    Texts of parameters do so where they say which tool gives their value. A mention is at least two
    words long and written as a name: as an identifier, or with every word capitalised. Otherwise a
    text about a stock price would mention a tool ``stock_price``.

    Example:
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index import IndexConfig
        >>> search = ToolDefinition.from_schema("search_hotels", "Find hotels.", {})
        >>> channel = NameWordsChannel()
        >>> index = Library([search]).derived(IndexConfig(channels=(channel,)))
        >>> channel.mentioned(index, "Comes from **(Search Hotels)**.")
        ['search_hotels']
        >>> channel.mentioned(index, "The place to search hotels in.")
        []
    """

    @property
    def fingerprint(self) -> str:
        """There are no settings."""
        return f"name-words/{_VERSION}"

    def mentioned(self, index: ToolIndex, text: str) -> list[str]:
        """Names of the tools that ``text`` mentions, in the order in which it does."""
        spans = _spans(text[:_LONGEST_TEXT])
        if not spans.keys:
            return []
        names = self._names(index, spans)
        found: list[str] = []
        read_to = 0
        for at in sorted(names):
            if spans.starts[at] >= read_to and len(names[at]) <= _MOST_SHARING:
                found += sorted(names[at])
                read_to = spans.ends[at]
        return list(dict.fromkeys(found))

    def _names(self, index: ToolIndex, spans: _Spans) -> dict[int, list[str]]:
        """The tools whose words stand at a span, by the number of the span."""
        names: dict[int, list[str]] = {}
        for part, data in index.data(self):
            for at, (start, end) in enumerate(data.find(spans.keys)):
                for row in data.order[start:end].tolist():
                    if part.alive is None or part.alive[row]:
                        names.setdefault(at, []).append(part.segment.names[row])
        return names

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The words of the name of each definition, as a number."""
        import numpy as np

        keys = (_key_of_name(one.name) for one in definitions)
        return Rows.single(keys=np.fromiter(keys, np.uint64, len(definitions)))

    def prepared(self, rows: Rows) -> Inverted:
        """The rows of each name."""
        return Inverted.of(rows.arrays["keys"])


def name_words(name: str) -> tuple[str, ...]:
    """The words of a name, in small letters.

    Example:
        >>> name_words("Get_Hotel_Reviews(Tips)"), name_words("getHTTPHeaders2")
        (('get', 'hotel', 'reviews', 'tips'), ('get', 'http', 'headers', '2'))
    """
    return tuple(word.lower() for word in _WORD.findall(name))


def _key_of_name(name: str) -> int:
    words = name_words(name)
    return key_of(" ".join(words)) if len(words) >= _FEWEST_WORDS else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spans:
    """All that is written as a name in a text: in order, at each start the longest first."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    keys: tuple[int, ...]


@lru_cache(maxsize=8_192)
def _spans(text: str) -> _Spans:
    words = list(_WORD.finditer(text))
    spans = [
        (start, end)
        for start, last in enumerate(_reaches(text, words))
        for end in range(min(last, start + _MOST_WORDS), start + _FEWEST_WORDS - 1, -1)
    ]
    small = [word.group().lower() for word in words]
    return _Spans(
        starts=tuple(start for start, _ in spans),
        ends=tuple(end for _, end in spans),
        keys=tuple(key_of(" ".join(small[start:end])) for start, end in spans),
    )


def _reaches(text: str, words: Sequence[re.Match[str]]) -> list[int]:
    """For each word, the word before which a name that starts there must end.

    A name continues until a space, or while every word is capitalised.
    """
    reaches = [0] * len(words)
    unspaced = capitalised = next_start = len(words)
    for at in range(len(words) - 1, -1, -1):
        word = words[at]
        if at + 1 < len(words) and _SPACE.search(text, word.end(), next_start):
            unspaced = at + 1
        if not _is_capitalised(word.group()):
            capitalised = at
        reaches[at] = max(unspaced, capitalised)
        next_start = word.start()
    return reaches


def _is_capitalised(word: str) -> bool:
    return not word[0].islower() or word in _SMALL_WORDS


_SHARE = 0.95
"""A tool's share of the score of the tool that needs it: it ranks right behind."""

_FOLLOW, _HOPS = 5, 2
"""How many of the best tools are read, and how often: twice also finds what a needed tool needs."""


class References:
    """Lifts tools that the best ones name as the source of a required argument, and cuts.

    In catalogues of web services the text of a parameter often says where its value comes from:
    ``hotel_id``: *can be retrieved from Search Hotels*. A request for hotel reviews then needs a
    tool that it shares no word with. From the best tools their required parameters' texts are
    read; a tool that these mention (``NameWordsChannel``) rises to right behind the one that needs
    it, and is read next. Texts without mentions change nothing.

    It cannot bring back what an earlier stage dropped, so let the ranking before it keep all:
    ``TextRanker(cut=False)``.

    Args:
        keep: The number of tools passed to the next stage.
    """

    name = "references"

    def __init__(self, *, keep: int = 32) -> None:
        self._keep = keep
        self._names = NameWordsChannel()
        self.channels = (self._names,)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the ``keep`` best after lifting what they need."""
        read: dict[str, list[str]] = {}
        for _ in range(_HOPS):
            needed = self._needed(candidates, read)
            if not needed:
                break
            candidates = candidates.add(
                {name: gain for name, (gain, _) in needed.items()},
                reason={name: f"gives what {user} needs" for name, (_, user) in needed.items()},
                field=self.name,
            )
        return candidates.best(self._keep)

    def _needed(
        self, candidates: Candidates, read: dict[str, list[str]]
    ) -> dict[str, tuple[float, str]]:
        """For each tool to raise: by how much, and which tool needs it.

        Args:
            candidates: The ranking so far.
            read: What tools mention, by name; those that are read now are added.
        """
        scores = {hit.definition.name: hit.score for hit in candidates.hits}
        needed: dict[str, tuple[float, str]] = {}
        for hit in candidates.hits[:_FOLLOW]:
            user = hit.definition.name
            if user not in read:
                read[user] = self._sources(candidates, hit.definition)
            for name in read[user]:
                gain = _SHARE * _fit(hit) - scores.get(name, 0.0)
                if name != user and gain > max(needed.get(name, (0.0, ""))[0], 1e-6):
                    needed[name] = (gain, user)
        return needed

    def _sources(self, candidates: Candidates, definition: ToolDefinition) -> list[str]:
        required = definition.signature.required
        texts = definition.description.parameters
        return [
            name
            for parameter, text in texts.items()
            if parameter.split(".", maxsplit=1)[0] in required
            for name in self._names.mentioned(candidates.index, text)
            if candidates.has(name)
        ]


def _fit(hit: Hit) -> float:
    """The score of a tool without what it has for being called by name, which is no one else's."""
    return hit.score - hit.fields.get("name", 0.0)
