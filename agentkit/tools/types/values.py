"""What a value tells about its own type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentkit.tools.formats import FORMATS
from agentkit.tools.types.evidence import Guess, TypeEvidence
from agentkit.tools.types.lattice import Alternative, TypeSet, join, json_text
from agentkit.tools.types.vocabulary import (
    COLOURS,
    COUNTRIES,
    CURRENCIES,
    LANGUAGES,
    MONTHS,
    WEEKDAYS,
)

_LONGEST = 400
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
    rf"(?:{'|'.join(sorted(MONTHS))})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{'|'.join(sorted(MONTHS))}),?\s+\d{{4}}",
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
        return TypeEvidence(declared=declared, meanings=_guesses(value))
    if not isinstance(value, list | tuple) or not value:
        return TypeEvidence(declared=declared)
    parts = [type_of_value(item) for item in value[:_MOST_ITEMS]]
    items = join(part.declared for part in parts)
    domain = frozenset([json_text(list(value))])
    listed = Alternative(base="array", items=None if items.is_any else items, domain=domain)
    return TypeEvidence(
        declared=TypeSet(frozenset([listed])),
        meanings=parts[0].meanings if len({part.meanings for part in parts}) == 1 else (),
    )


def _guesses(text: str) -> tuple[Guess, ...]:
    text = text.strip()
    if not text or len(text) > _LONGEST:
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


_FORMS: tuple[tuple[str, float, Callable[[str], bool]], ...] = (
    ("date", 0.98, FORMATS["date"]),
    ("datetime", 0.98, FORMATS["date-time"]),
    ("date", 0.97, _is(_DATE_IN_WORDS)),
    ("date", 0.96, _is(_SLASHED_DATE)),
    ("time", 0.95, _is(_CLOCK)),
    ("duration", 0.95, lambda text: len(text) > 2 and FORMATS["duration"](text)),
    ("email", 0.99, _is(_EMAIL)),
    ("url", 0.99, _is(_URL)),
    ("uuid", 0.99, FORMATS["uuid"]),
    ("ip", 0.98, lambda text: FORMATS["ipv4"](text) or (":" in text and FORMATS["ipv6"](text))),
    ("phone", 0.95, _is(_PHONE)),
    ("colour", 0.9, _is(_HEX_COLOUR)),
    ("file_path", 0.9, _is(_PATH)),
    ("money", 0.96, _is(_MONEY)),
    ("currency", 0.9, lambda text: text in CURRENCIES),
    ("country", 0.9, _among(COUNTRIES)),
    ("weekday", 0.9, _among(WEEKDAYS)),
    ("language", 0.85, _among(LANGUAGES)),
    ("colour", 0.8, _among(COLOURS)),
    ("month", 0.8, _among(MONTHS)),
)
"""Tried in this order: what it would be, how surely, and the test."""
