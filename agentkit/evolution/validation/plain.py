"""Words that say nothing by themselves, and which words are forms of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from agentkit.evolution.validation.shipped import shipped_lines, shipped_sections

_ENDING = re.compile(
    r"(?:ations?|ings?|ions?|ers?|ors?|ies|ied|ed|es|ly|al|en|er|te?n|(?<!s)s|e|y|a|o)$"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST_STEM = 7
_DOUBLED = frozenset("bdfgmnprt")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A word without its ending, roughly: only whether two words may be forms of one matters.

    Example:
        >>> stem("searching") == stem("searches"), stem("cities") == stem("city")
        (True, True)
    """
    for least in (3, 4, 4, 4):
        cut = _ENDING.sub("", word, count=1)
        if len(cut) < least or cut == word or not word.isascii():
            break
        word = cut[:-1] if cut[-1] == cut[-2] and cut[-1] in _DOUBLED else cut
    return word[:_LONGEST_STEM]


def stems_of(text: str) -> frozenset[str]:
    """The stems of the words of a folded text."""
    return frozenset(map(stem, _LETTERS.findall(text)))


def spaced(text: str) -> str:
    """A text with the words of names in camel case apart."""
    return _HUMP.sub(" ", text)


@cache
def word_stems(name: str) -> frozenset[str]:
    """The stems of a list of words in ``phrases/claims.txt``."""
    return stems_of(" ".join(shipped_sections("claims")[f"words of {name}"]))


def is_plain(word: str) -> bool:
    """Whether a folded word says nothing by itself (``phrases/plain_words.txt``)."""
    return stem(word) in PLAIN or word in PLAIN_ABROAD


def words(lines: Iterable[str]) -> Iterator[str]:
    """Every word of some lines."""
    for line in lines:
        yield from line.split()


@cache
def catalogue_nouns() -> frozenset[str]:
    """Nouns that many unrelated tools use (``tests/benchmarks/catalogue_words.py``)."""
    return frozenset(words(shipped_lines("catalogue_words")))


SECTIONS: Mapping[str, list[str]] = shipped_sections("plain_words")
_ENGLISH = ("grammar", "describing", "values", "writing", "subjects")
PLAIN = frozenset(stem(word) for name in _ENGLISH for word in words(SECTIONS[name]))
PLAIN_ABROAD = frozenset(
    word for name in ("de", "fr", "es", "pt", "it") for word in words(SECTIONS[name])
)
"""Of other languages words alone count: French *pays* is no form of the English verb."""

FORMAL = PLAIN - frozenset(map(stem, words(SECTIONS["subjects"])))
GRAMMAR = frozenset(
    stem(word) for name in ("grammar", "describing") for word in words(SECTIONS[name])
)
DESCRIBING = frozenset(map(stem, words(SECTIONS["describing"])))
ALIKE = tuple(frozenset(map(stem, line.split())) for line in SECTIONS["alike"])
BEFORE_OBJECTS = frozenset(
    ("the", "a", "an", "all", "any", "each", "every", "new", "old", "it", "them")
)
CAPITALS = frozenset(map(stem, ("capital", "uppercase")))
SMALL = frozenset(map(stem, ("small", "lowercase")))
WRITING = frozenset(map(stem, words(SECTIONS["writing"])))
PLAIN_UNSPACED = re.compile(
    "|".join(sorted((*words(SECTIONS["zh"]), *words(SECTIONS["ja"])), key=len, reverse=True))
)
UNITS, UNIT_NAMES = (
    {
        word: (dimension, line.partition(": ")[0])[which]
        for dimension, lines in shipped_sections("units").items()
        for line in lines
        for word in line.partition(": ")[2].split()
    }
    for which in (0, 1)
)
"""What each word of a unit measures, and which unit it is."""
