"""What a parameter, a result or a value is probably about: guessed from names, texts and values.

The clues are few, and their words are in ``vocabulary.json``; their confidences were chosen by hand
on the development parts of public catalogues, and docs/agentkit-bench.md says what they are for. A
guess that the declared type rules out (a list for an e-mail address) is dropped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.patterns import FORMATS
from agentkit.tools.schema import JsonType
from agentkit_bench.type_lattice import (
    ANY,
    OWNED_ID,
    Alternative,
    TypeSet,
    declared_type,
    join,
    json_text,
    written_as,
)

_MOST_CERTAIN = 0.99
"""No guess is certain; only a declaration is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A meaning that values probably have.

    Attributes:
        meaning: One of ``agentkit_bench.type_lattice.MEANINGS``.
        confidence: Between 0 and 1.
    """

    meaning: str
    confidence: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeEvidence:
    """All that is known about the type of a parameter, a result or a value.

    Attributes:
        declared: What the schema says; sure.
        meanings: What names, texts and values suggest beyond that, the surest first.
    """

    declared: TypeSet = ANY
    meanings: tuple[Guess, ...] = ()


def pooled(guesses: Iterable[Guess]) -> tuple[Guess, ...]:
    """Guesses from independent clues together, the surest first.

    Two clues for one meaning make it surer than either: both have to be wrong.

    Example:
        >>> pooled([Guess(meaning="date", confidence=0.8), Guess(meaning="date", confidence=0.5)])
        (Guess(meaning='date', confidence=0.9),)
    """
    guesses = tuple(guesses)
    if len(guesses) < 2:
        return guesses
    doubt: dict[str, float] = {}
    for guess in guesses:
        doubt[guess.meaning] = doubt.get(guess.meaning, 1.0) * (1.0 - guess.confidence)
    sure = {meaning: min(round(1.0 - left, 4), _MOST_CERTAIN) for meaning, left in doubt.items()}
    ranked = sorted(sure.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Guess(meaning=meaning, confidence=value) for meaning, value in ranked)


# --- words ----------------------------------------------------------------------------------------

_WORDS: Mapping[str, Any] = json.loads(
    Path(__file__).with_name("vocabulary.json").read_text(encoding="utf-8")
)

_MONTHS: frozenset[str] = frozenset(_WORDS["months"])
"""Months of the year."""

_CURRENCIES: frozenset[str] = frozenset(_WORDS["currencies"])
"""The codes of ISO 4217 that catalogues use."""

_LISTS: Mapping[str, frozenset[str]] = {
    "unit": frozenset(_WORDS["units"]),
    "weekday": frozenset(_WORDS["weekdays"]),
    "month": _MONTHS,
    "language": frozenset(_WORDS["languages"]),
    "country": frozenset(_WORDS["countries"]),
    "currency": frozenset(code.casefold() for code in _CURRENCIES),
    "colour": frozenset(_WORDS["colours"]),
}
"""Values, in small letters, by what they mean; names of countries that are also common words are
left out."""

_LAST_WORDS: Mapping[str, tuple[str, float]] = _WORDS["last_words"]
"""What the last word of a name suggests, and how surely: the noun that the others describe."""

_LAST_TWO_WORDS: Mapping[str, tuple[str, float]] = _WORDS["last_two_words"]
"""What the last two words suggest; this wins over the last one alone. An empty meaning is none."""

_FIRST_WORDS: Mapping[str, tuple[str, float]] = _WORDS["first_words"]
"""What the first word suggests where the last one says nothing."""

_TEXT_CLUES: Sequence[tuple[str, float, str, re.Pattern[str]]] = [
    (meaning, confidence, needed, re.compile(pattern, re.DOTALL))
    for meaning, confidence, needed, pattern in _WORDS["text_clues"]
]
"""Meaning, confidence, a text that must occur (a cheap test), and a pattern of descriptions."""


# --- values ---------------------------------------------------------------------------------------

_LONGEST_VALUE = 400
"""Longer texts are prose; no meaning is looked for."""

_MOST_ITEMS = 50

_NUMBER = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+-]?\d+(?:\.\d+)?"
_UNIT = (
    r"(?P<length>km|kilomet(?:er|re)s?|miles?|met(?:er|re)s?|cm|mm|feet|foot|ft|inch(?:es)?|yards?)"
    r"|(?P<mass>kg|kilograms?|grams?|lbs?|pounds?|ounces?|oz|tons?|tonnes?)"
    r"|(?P<temperature>°\s?[CFK]|degrees? (?:celsius|fahrenheit)|celsius|fahrenheit|kelvin)"
    r"|(?P<speed>km/h|kph|mph|m/s|knots?)"
    r"|(?P<volume>lit(?:er|re)s?|ml|gallons?)"
    r"|(?P<duration>seconds?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?)"
    r"|(?P<percentage>%|percent)"
)
_WITH_UNIT = re.compile(rf"(?:{_NUMBER})\s?-?\s?(?:{_UNIT})", re.IGNORECASE)
_MONEY = re.compile(
    rf"[$€£¥₹]\s?(?:{_NUMBER})|(?:{_NUMBER})\s?(?:[$€£¥₹]|dollars?|euros?|USD|EUR|GBP)",
    re.IGNORECASE,
)
_URL = re.compile(r"(?:https?|ftp|wss?)://[^\s<>\"]+|www\.[\w-]+\.[^\s<>\"]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"\+\d[\d ().-]{6,18}\d|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}")
_DATE_IN_WORDS = re.compile(
    rf"(?:{'|'.join(sorted(_MONTHS))})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{'|'.join(sorted(_MONTHS))}),?\s+\d{{4}}",
    re.IGNORECASE,
)
_SLASHED_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}|\d{4}/\d{1,2}/\d{1,2}")
_CLOCK = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?m\.?)?", re.IGNORECASE)
_HEX_COLOUR = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+/?|[A-Za-z]:\\[\w\\ .-]+")


def type_of_value(value: Any) -> TypeEvidence:
    """The type of a JSON value: exactly itself, and what it is probably about.

    A meaning is only guessed where the form of the value leaves little doubt: a text that could
    be many things (``Paris``, ``12345``) has none. Of a value that JSON can not write nothing is
    known.

    Example:
        >>> type_of_value("2024-08-15").meanings
        (Guess(meaning='date', confidence=0.98),)
        >>> print(type_of_value(["ada@example.org"]).declared)
        array of (string in {"ada@example.org"}) in {["ada@example.org"]}
        >>> type_of_value("Paris").meanings
        ()
    """
    try:
        declared = TypeSet.one_of([value])
    except (ValueError, RecursionError):  # it holds itself, or is larger than JSON text can be
        return TypeEvidence()
    if isinstance(value, str):
        return TypeEvidence(declared=declared, meanings=_guesses_of_value(value))
    if not isinstance(value, list | tuple) or not value:
        return TypeEvidence(declared=declared)
    parts = [type_of_value(item) for item in value[:_MOST_ITEMS]]
    items = join(part.declared for part in parts)
    known = None if items.is_any else items
    listed = Alternative(base="array", items=known, value=json_text(list(value)))
    return TypeEvidence(
        declared=TypeSet(frozenset([listed])),
        meanings=parts[0].meanings if len({part.meanings for part in parts}) == 1 else (),
    )


def _guesses_of_value(text: str) -> tuple[Guess, ...]:
    text = text.strip()
    if not text or len(text) > _LONGEST_VALUE:
        return ()
    for meaning, confidence, holds in _FORMS:
        if holds(text):
            return (Guess(meaning=meaning, confidence=confidence),)
    found = _WITH_UNIT.fullmatch(text)
    if found is None or found.lastgroup is None:
        return ()
    return (Guess(meaning=found.lastgroup, confidence=0.95),)


def _is(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _among(words: frozenset[str]) -> Callable[[str], bool]:
    return lambda text: text.casefold() in words


_DURATION = re.compile(
    r"[+-]?P(?=.)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?)", re.ASCII
)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


_FORMS: tuple[tuple[str, float, Callable[[str], bool]], ...] = (
    ("date", 0.98, FORMATS["date"]),
    ("datetime", 0.98, FORMATS["date-time"]),
    ("date", 0.97, _is(_DATE_IN_WORDS)),
    ("date", 0.96, _is(_SLASHED_DATE)),
    ("time", 0.95, _is(_CLOCK)),
    ("duration", 0.95, lambda text: len(text) > 2 and _DURATION.fullmatch(text) is not None),
    ("email", 0.99, _is(_EMAIL)),
    ("url", 0.99, _is(_URL)),
    ("uuid", 0.99, FORMATS["uuid"]),
    ("ip", 0.98, _is_address),
    ("phone", 0.95, _is(_PHONE)),
    ("colour", 0.9, _is(_HEX_COLOUR)),
    ("file_path", 0.9, _is(_PATH)),
    ("money", 0.96, _is(_MONEY)),
    ("currency", 0.9, lambda text: text in _CURRENCIES),
    ("country", 0.9, _among(_LISTS["country"])),
    ("weekday", 0.9, _among(_LISTS["weekday"])),
    ("language", 0.85, _among(_LISTS["language"])),
    ("colour", 0.8, _among(_LISTS["colour"])),
    ("month", 0.8, _among(_MONTHS)),
)
"""Tried in this order: what it would be, how surely, and the test."""


# --- names, descriptions and values together ----------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_IDENTIFIERS = frozenset({"id", "identifier"})
_LONGEST_NAME = 200
_LONGEST_TEXT = 600
_MOST_OBSERVED = 50


def type_of(
    schema: Any,
    *,
    name: str = "",
    description: str = "",
    observed: Iterable[Any] = (),
    root: JsonObject | None = None,
    is_result: bool = False,
) -> TypeEvidence:
    """What is known about the type of a parameter or a result.

    Args:
        schema: Its JSON Schema; what it declares is taken as sure, ``format`` included.
        name: Its name.
        description: What its author says about it; the schema's own text by default.
        observed: Values that it had.
        root: The document that ``$ref`` points into.
        is_result: Whether it comes out of a tool, see ``declared_type``.

    Example:
        >>> known = type_of({"type": "string"}, name="departure_date", description="As YYYY-MM-DD.")
        >>> print(known.declared, known.meanings)
        string (Guess(meaning='date', confidence=0.99),)
        >>> type_of({"type": "array"}, name="email").meanings
        ()
    """
    declared = declared_type(schema, root=root, is_result=is_result)
    known = schema if isinstance(schema, Mapping) else {}
    own_text = known.get("description")
    text = description or (own_text if isinstance(own_text, str) else "")
    clues = [*guesses_of_name(name[:_LONGEST_NAME]), *_of_text(text), *_of_values(observed)]
    clues.extend(_of_list(known.get("enum")))
    clues.extend(_of_values(_examples(known)))
    return TypeEvidence(declared=declared, meanings=pooled(_possible(clues, declared)))


def _possible(guesses: Iterable[Guess], declared: TypeSet) -> Iterator[Guess]:
    """Guesses that the declared type allows; those at a list speak of its items."""
    bases = _scalar_bases(declared)
    certain = declared.meanings
    for guess in guesses:
        if guess.meaning and not certain and bases & written_as(guess.meaning):
            yield guess


def _scalar_bases(declared: TypeSet) -> frozenset[JsonType]:
    """The JSON types of the values, where a list counts as its items."""
    if "array" not in declared.bases:
        return declared.bases
    items = join(one.items for one in declared.alternatives if one.items is not None)
    return (declared.bases - {"array"}) | items.bases


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier in small letters, without a plural ``s``.

    Example:
        >>> words_of("departureDates"), words_of("hotel_ids"), words_of("IPAddress")
        (('departure', 'date'), ('hotel', 'id'), ('ip', 'address'))
    """
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def _singular(word: str) -> str:
    if word in {"cities", "countries", "currencies"}:
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 2 and word[-1] == "s" and word[-2] not in "sui" else word


@lru_cache(maxsize=16_384)
def guesses_of_name(name: str) -> tuple[Guess, ...]:
    """What the name of a parameter suggests; nothing for most names."""
    words = words_of(name)
    if not words:
        return ()
    if words[-1] in _IDENTIFIERS:
        owner = "_".join(words[:-1])
        return (Guess(meaning=f"{OWNED_ID}{owner}" if owner else "id", confidence=0.9),)
    found = _LAST_TWO_WORDS.get(" ".join(words[-2:])) if len(words) > 1 else None
    found = found or _LAST_WORDS.get(words[-1]) or _FIRST_WORDS.get(words[0])
    return (Guess(meaning=found[0], confidence=found[1]),) if found else ()


def _of_text(text: str) -> Iterator[Guess]:
    text = text[:_LONGEST_TEXT].lower()
    for meaning, confidence, needed, pattern in _TEXT_CLUES:
        if needed in text and pattern.search(text) is not None:
            yield Guess(meaning=meaning, confidence=confidence)


def _of_list(values: Any) -> Iterator[Guess]:
    """What the values of an ``enum`` have in common."""
    if not isinstance(values, list):
        return
    texts = {value.casefold() for value in values if isinstance(value, str)}
    if len(texts) < 2:
        return
    for meaning, words in _LISTS.items():
        if len(texts & words) * 2 > len(texts):
            yield Guess(meaning=meaning, confidence=0.9)
            return


def _of_values(values: Iterable[Any]) -> Iterator[Guess]:
    """The meaning that most observed values have."""
    several = [value for value, _ in zip(values, range(_MOST_OBSERVED), strict=False)]
    if not several:
        return
    seen = Counter(guess.meaning for value in several for guess in type_of_value(value).meanings)
    for meaning, count in seen.most_common(1):
        share = count / len(several)
        if share > 0.5:
            yield Guess(meaning=meaning, confidence=round(0.95 * share, 4))


def _examples(schema: JsonObject) -> list[Any]:
    examples = schema.get("examples")
    found = list(examples) if isinstance(examples, list) else []
    return [*found, schema["default"]] if isinstance(schema.get("default"), str) else found
