"""Words that say nothing by themselves, and how texts say how a value is written.

The words stand in ``phrases/plain_words.txt``, the patterns in ``phrases/wording.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache

from agentkit.evolution.validation.phrases import pattern, sections, words

_ENDING = re.compile(
    r"(?:ations?|ings?|ions?|ers?|ors?|ies|ied|ed|es|ly|al|en|er|te?n|(?<!s)s|e|y|a|o)$"
)
LETTERS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST_STEM = 7
_DOUBLED = frozenset("bdfgmnprt")
_ENGLISH = ("grammar", "describing", "values", "writing", "subjects")
_ABROAD = ("de", "fr", "es", "pt", "it")


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
    return frozenset(map(stem, LETTERS.findall(text)))


def spaced(text: str) -> str:
    """A text with the words of names apart that are written in one."""
    return _HUMP.sub(" ", text).replace("_", " ")


@cache
def stems(*names: str) -> frozenset[str]:
    """The stems of lists of plain words; of all English ones where none is named."""
    return frozenset(
        stem(word) for name in names or _ENGLISH for word in words("plain_words", name)
    )


@cache
def formal() -> frozenset[str]:
    """The stems of plain words that name no thing."""
    return stems() - stems("subjects")


@cache
def word_stems(name: str) -> frozenset[str]:
    """The stems of a list of words in ``phrases/claims.txt``."""
    return frozenset(map(stem, words("claims", f"words of {name}")))


@cache
def alike() -> tuple[frozenset[str], ...]:
    """What the texts of parameters call the same thing."""
    return tuple(frozenset(map(stem, line.split())) for line in sections("plain_words")["alike"])


@cache
def plain_abroad() -> frozenset[str]:
    """Of other languages words alone count: French *pays* is no form of the English verb."""
    return frozenset().union(*(words("plain_words", name) for name in _ABROAD))


@cache
def plain_unspaced() -> re.Pattern[str]:
    """Plain words of Chinese and Japanese, the longest first."""
    found = words("plain_words", "zh") | words("plain_words", "ja")
    return re.compile("|".join(sorted(found, key=lambda word: (-len(word), word))))


def is_plain(word: str) -> bool:
    """Whether a folded word says nothing by itself."""
    return stem(word) in stems() or word in plain_abroad()


@cache
def counts() -> Mapping[str, float]:
    """Numbers that are written as words."""
    lines = (line.partition(": ") for line in sections("wording")["counts"])
    return {word: float(number) for number, _, said in lines for word in said.split()}


def says(name: str) -> re.Pattern[str]:
    """How texts say something: a section of ``phrases/wording.txt``."""
    return pattern("wording", name)


_MAY_SHOW = re.compile(
    r"\(|such as|e\.g|xample|like|z\.|emple|emplo|instance|com[mo]|beispiel|ej\.|[例比如]",
    re.IGNORECASE,
)


def without_examples(text: str) -> str:
    """A text without the values that it names as examples."""
    return says("examples").sub(" ", text) if _MAY_SHOW.search(text) else text


WIDE = str.maketrans("\uff08\uff09\uff1a\u2018\u2019", "():''")
ISO = frozenset({"yyyy-mm-dd", "yyyy-mm", "hh:mm", "hh:mm:ss"})
"""How dates and times are written where a tool shows no other way."""

_MASK_PART = r"(?>y{4}|j{4}|a{4}|yy|jj|mm|dd|tt|hh|ss)"
_MASK = re.compile(rf"(?<![^\W_]){_MASK_PART}(?:[-/.: ]?(?:t(?=hh))?{_MASK_PART})++z?(?![^\W_])")
WRITTEN_SO = re.compile(rf"(?:\b(?:written|given) (?:as|like|in the form(?:at)?) )?{_MASK.pattern}")
_DATE_OR_TIME = re.compile(
    r"(?<![\w./-])(?:(\d{4})([-/.])\d\d\2\d\d|\d\d([-/.])\d\d\3\d{4}|\d\d(?::\d\d){1,2})(?![\w/-])"
)


def masks(text: str) -> Iterator[str]:
    """The forms of dates and times that a folded text has, in letters or in examples."""
    for match in _MASK.finditer(text):
        mask = re.sub("jj|tt", "dd", re.sub("j{4}|a{4}", "yyyy", match.group().rstrip("z")))
        yield from re.split(r"t| (?=hh)", mask)
    for match in _DATE_OR_TIME.finditer(text):
        value, (year, one, other) = match.group(), match.groups()
        if year:
            yield f"yyyy{one}mm{one}dd"
        elif other:
            yield from (f"dd{other}mm{other}yyyy", f"mm{other}dd{other}yyyy")
        else:
            yield "hh:mm:ss"[: len(value)]


_SECONDS = {
    "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800,
    "month": 2_629_746, "year": 31_556_952, "decade": 315_569_520,
}  # fmt: skip


@cache
def _converted() -> re.Pattern[str]:
    unit = rf"({'|'.join(_SECONDS)})s?"
    count = rf"(\d+|an?|one|half an?|{'|'.join(counts())})"
    return re.compile(
        rf"[\"'`]?\b{count} {unit}[\"'`]? ?(?:=|is|are|means?) (\d+)\b(?: {unit}\b)?",
        re.IGNORECASE,
    )


_WRITTEN_OUT = re.compile(r"\b(\d\d? [A-Z]\w{2,8} \d{4})(?: is|:| =) (\d{4}-\d\d-\d\d)\b")


def _dated(found: re.Match[str]) -> str:
    try:
        day = datetime.strptime(f"{found[1]} +0000", "%d %B %Y %z").date()
    except ValueError:
        return found.group()
    return " " if day.isoformat() == found[2] else found.group()


def without_conversions(text: str, about: str) -> str:
    """A text without units of time that are converted rightly, and dates written twice.

    Example:
        >>> without_conversions("Term: 3 years are 36 months, 4 years are 50 months.", "months")
        'Term:  , 4 years are 50 months.'
    """
    own = next((unit for unit in _SECONDS if unit in about.casefold()), "")

    def converted(found: re.Match[str]) -> str:
        written, unit, result, other = (part and part.casefold() for part in found.groups())
        count = counts().get(written) or (float(written) if written.isdigit() else 1.0)
        count = 0.5 if written.startswith("half") else count
        other = other or own
        is_right = other and round(count * _SECONDS[unit] / _SECONDS[other], 3) == float(result)
        return " " if is_right else found.group()

    if not any(map(str.isdigit, text)):
        return text
    return _WRITTEN_OUT.sub(_dated, _converted().sub(converted, text))
