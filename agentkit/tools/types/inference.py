"""Guessing what a parameter or a result means: from its name, its text, its values.

The clues are few and each is worth a number, chosen by hand on the development parts of public
catalogues; ``docs/types.md`` says how often they are right. A guess that the declared type rules
out (a list for an e-mail address) is dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.types.evidence import Guess, TypeEvidence, pooled
from agentkit.tools.types.lattice import Base, TypeSet, join
from agentkit.tools.types.meanings import OWNED_ID, wider
from agentkit.tools.types.schemas import declared_type
from agentkit.tools.types.values import type_of_value
from agentkit.tools.types.vocabulary import (
    COLOURS,
    COUNTRIES,
    CURRENCIES,
    LANGUAGES,
    MONTHS,
    UNITS,
    WEEKDAYS,
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_TEXT: frozenset[Base] = frozenset({"string"})
_NUMERIC: frozenset[Base] = frozenset({"integer", "number"})
_EITHER: frozenset[Base] = _TEXT | _NUMERIC

_WRITTEN_AS: Mapping[str, frozenset[Base]] = {
    "moment": _EITHER,
    "month": _EITHER,
    "date": _TEXT,
    "time": _TEXT,
    "weekday": _TEXT,
    "duration": _EITHER,
    "coordinate": _EITHER,
    "id": _EITHER,
    "phone": _EITHER,
    "postal_code": _EITHER,
    "count": frozenset({"integer", "number"}),
    "quantity": _EITHER,
    "length": _NUMERIC,
    "mass": _NUMERIC,
    "speed": _NUMERIC,
    "area": _NUMERIC,
    "volume": _NUMERIC,
}
"""JSON types that a meaning is written in; those of the nearest wider meaning, else text."""

_BY_LAST_WORD: Mapping[str, tuple[str, float]] = {
    "date": ("date", 0.9),
    "day": ("date", 0.3),
    "datetime": ("datetime", 0.9),
    "timestamp": ("datetime", 0.85),
    "time": ("time", 0.5),
    "year": ("year", 0.9),
    "month": ("month", 0.85),
    "weekday": ("weekday", 0.9),
    "duration": ("duration", 0.85),
    "city": ("city", 0.9),
    "town": ("city", 0.85),
    "country": ("country", 0.9),
    "province": ("region", 0.8),
    "region": ("region", 0.6),
    "address": ("address", 0.7),
    "location": ("place", 0.8),
    "place": ("place", 0.8),
    "destination": ("place", 0.7),
    "origin": ("place", 0.6),
    "airport": ("airport", 0.9),
    "zip": ("postal_code", 0.9),
    "zipcode": ("postal_code", 0.95),
    "postcode": ("postal_code", 0.95),
    "lat": ("latitude", 0.9),
    "latitude": ("latitude", 0.95),
    "lon": ("longitude", 0.9),
    "lng": ("longitude", 0.9),
    "longitude": ("longitude", 0.95),
    "email": ("email", 0.92),
    "mail": ("email", 0.7),
    "phone": ("phone", 0.9),
    "telephone": ("phone", 0.9),
    "url": ("url", 0.92),
    "uri": ("url", 0.9),
    "link": ("url", 0.7),
    "website": ("url", 0.7),
    "ip": ("ip", 0.9),
    "uuid": ("uuid", 0.9),
    "guid": ("uuid", 0.9),
    "language": ("language", 0.85),
    "lang": ("language", 0.85),
    "locale": ("language", 0.7),
    "currency": ("currency", 0.9),
    "color": ("colour", 0.8),
    "colour": ("colour", 0.8),
    "path": ("file_path", 0.75),
    "filepath": ("file_path", 0.9),
    "filename": ("file_path", 0.85),
    "directory": ("file_path", 0.7),
    "password": ("secret", 0.9),
    "token": ("secret", 0.6),
    "secret": ("secret", 0.8),
    "limit": ("count", 0.7),
    "page": ("count", 0.7),
    "offset": ("count", 0.7),
    "count": ("count", 0.8),
    "quantity": ("count", 0.7),
    "price": ("money", 0.75),
    "cost": ("money", 0.75),
    "budget": ("money", 0.75),
    "salary": ("money", 0.8),
    "income": ("money", 0.75),
    "fee": ("money", 0.7),
    "revenue": ("money", 0.75),
    "balance": ("money", 0.5),
    "amount": ("money", 0.5),
    "percent": ("percentage", 0.85),
    "percentage": ("percentage", 0.9),
    "distance": ("length", 0.85),
    "height": ("length", 0.75),
    "width": ("length", 0.7),
    "radius": ("length", 0.7),
    "depth": ("length", 0.4),
    "weight": ("mass", 0.6),
    "mass": ("mass", 0.85),
    "temperature": ("temperature", 0.8),
    "speed": ("speed", 0.8),
    "velocity": ("speed", 0.85),
    "area": ("area", 0.6),
    "volume": ("volume", 0.5),
    "age": ("age", 0.85),
    "unit": ("unit", 0.85),
}
"""What the last word of a name suggests: the noun that the others describe."""

_BY_LAST_TWO: Mapping[tuple[str, str], tuple[str, float]] = {
    ("mail", "address"): ("email", 0.95),
    ("email", "address"): ("email", 0.97),
    ("ip", "address"): ("ip", 0.95),
    ("mac", "address"): ("id", 0.6),
    ("wallet", "address"): ("id", 0.6),
    ("web", "address"): ("url", 0.9),
    ("postal", "code"): ("postal_code", 0.95),
    ("zip", "code"): ("postal_code", 0.95),
    ("country", "code"): ("country", 0.95),
    ("currency", "code"): ("currency", 0.95),
    ("language", "code"): ("language", 0.95),
    ("airport", "code"): ("airport", 0.95),
    ("color", "code"): ("colour", 0.85),
    ("phone", "number"): ("phone", 0.95),
    ("mobile", "number"): ("phone", 0.9),
    ("contact", "number"): ("phone", 0.85),
    ("file", "name"): ("file_path", 0.85),
    ("api", "key"): ("secret", 0.9),
    ("city", "name"): ("city", 0.9),
    ("country", "name"): ("country", 0.9),
    ("learning", "rate"): ("", 0.0),
    ("time", "zone"): ("", 0.0),
    ("start", "time"): ("moment", 0.7),
    ("end", "time"): ("moment", 0.7),
    ("travel", "time"): ("duration", 0.6),
    ("waiting", "time"): ("duration", 0.6),
}

_BY_FIRST_WORD: Mapping[str, tuple[str, float]] = {
    "num": ("count", 0.85),
    "number": ("count", 0.8),
    "max": ("count", 0.3),
}

_IDENTIFIERS = frozenset({"id", "identifier"})

_TEXT_CLUES: Sequence[tuple[str, float, str, str]] = (
    ("datetime", 0.9, "yyyy", r"yyyy-mm-dd[t ]+\W?hh"),
    ("datetime", 0.9, "time", r"date[- ]time|iso ?8601 (?:timestamp|datetime)"),
    ("date", 0.93, "yyyy", r"(?:yyyy[-/]mm[-/]dd|(?:mm[-/]dd|dd[-/]mm)[-/]yyyy)(?!\W?t?\W?hh)"),
    ("time", 0.85, "hh:mm", r"^(?!.*yyyy).*hh:mm"),
    ("time", 0.85, "hour", r"24-hour format|hours? and minutes"),
    ("email", 0.8, "mail", r"e-?mail address"),
    ("url", 0.75, "ur", r"\burl\b|\buri\b"),
    ("airport", 0.9, "a", r"\biata\b|airport code"),
    ("currency", 0.9, "currency", r"currency code|currency to convert"),
    ("currency", 0.9, "4217", r"iso[- ]4217"),
    ("language", 0.9, "language", r"language code"),
    ("language", 0.9, "639", r"iso[- ]639"),
    ("country", 0.9, "country", r"country code"),
    ("country", 0.9, "3166", r"iso[- ]3166"),
    ("city", 0.6, "city", r"name of the city|city name|the city (?:where|in which|for which|to)"),
    ("place", 0.8, "city", r"city and (?:the )?(?:state|country)|city, (?:state|country)"),
    ("place", 0.8, "san francisco, ca", r"san francisco, ca"),
    ("latitude", 0.8, "latitude", r"^(?!.*longitude).*\blatitude\b"),
    ("longitude", 0.8, "longitude", r"^(?!.*latitude).*\blongitude\b"),
    ("phone", 0.85, "phone number", r"phone number"),
    ("ip", 0.8, "ip", r"\bip address\b|\bipv[46]\b"),
    ("postal_code", 0.85, "code", r"postal code|zip code"),
    ("file_path", 0.75, "path", r"path (?:to|of) (?:the |a )?(?:\w+ )?(?:file|folder|directory)"),
    ("percentage", 0.75, "percent", r"as a percentage|in percent\b"),
    ("money", 0.7, "in ", r"in (?:us )?dollars|in usd\b|in (?:euros?|eur)\b"),
    (
        "length",
        0.75,
        "in ",
        r"in (?:(?:kilo|centi|milli)?met(?:er|re)s?|miles|feet|inches|km|cm)\b",
    ),
    ("mass", 0.75, "in ", r"in (?:(?:kilo)?grams?|kg|pounds|lbs?)\b"),
    ("temperature", 0.7, "in ", r"in (?:degrees )?(?:celsius|fahrenheit|kelvin)"),
    ("speed", 0.75, "in ", r"in (?:m/s|km/h|mph|(?:met(?:er|re)s|kilomet(?:er|re)s) per )"),
    ("duration", 0.7, "in ", r"in (?:(?:milli)?seconds|minutes|hours|days|years|months)\b"),
    ("id", 0.6, "identifier", r"unique identifier|identifier of"),
    ("id", 0.6, "id of the", r"\bid of the\b"),
)
"""Meaning, confidence, a text that has to be there (a cheap test), and a pattern."""

_CLUES = tuple((*clue[:3], re.compile(clue[3], re.DOTALL)) for clue in _TEXT_CLUES)

_LISTED: Sequence[tuple[str, frozenset[str]]] = (
    ("unit", UNITS),
    ("weekday", WEEKDAYS),
    ("month", MONTHS),
    ("language", LANGUAGES),
    ("country", COUNTRIES),
    ("currency", frozenset(code.casefold() for code in CURRENCIES)),
    ("colour", COLOURS),
)
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


def type_of_part(name: str, declared: TypeSet) -> TypeEvidence:
    """What is known about a field of an object: its declared type, and what its name suggests.

    Example:
        >>> type_of_part("check_in_date", TypeSet.of("string")).meanings
        (Guess(meaning='date', confidence=0.9),)
    """
    return TypeEvidence(
        declared=declared,
        meanings=pooled(_possible(guesses_of_name(name[:_LONGEST_NAME]), declared)),
    )


def _possible(guesses: Iterable[Guess], declared: TypeSet) -> Iterator[Guess]:
    """Guesses that the declared type allows; those at a list speak of its items."""
    bases = _scalar_bases(declared)
    certain = declared.meanings
    for guess in guesses:
        if guess.meaning and not certain and bases & written_as(guess.meaning):
            yield guess


@lru_cache(maxsize=1_024)
def written_as(meaning: str) -> frozenset[Base]:
    """The JSON types that values of a meaning are written in."""
    return next((_WRITTEN_AS[one] for one in wider(meaning) if one in _WRITTEN_AS), _TEXT)


def _scalar_bases(declared: TypeSet) -> frozenset[Base]:
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
    found = _BY_LAST_TWO.get((words[-2], words[-1])) if len(words) > 1 else None
    found = found or _BY_LAST_WORD.get(words[-1]) or _BY_FIRST_WORD.get(words[0])
    return (Guess(meaning=found[0], confidence=found[1]),) if found else ()


def _of_text(text: str) -> Iterator[Guess]:
    text = text[:_LONGEST_TEXT].lower()
    for meaning, confidence, needed, pattern in _CLUES:
        if needed in text and pattern.search(text) is not None:
            yield Guess(meaning=meaning, confidence=confidence)


def _of_list(values: Any) -> Iterator[Guess]:
    """What the values of an ``enum`` have in common."""
    if not isinstance(values, list):
        return
    texts = {value.casefold() for value in values if isinstance(value, str)}
    if len(texts) < 2:
        return
    for meaning, words in _LISTED:
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
