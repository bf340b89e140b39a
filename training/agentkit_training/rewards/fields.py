"""Which arguments are structured and which are free text, and how texts are compared.

ToolDNA compares structured fields exactly and lets only free text match in part (appendix C.3.1,
"Type-Specific Matching Consistency"), without saying which fields are which. ``field_kind`` is our
rule; it decides for ``exact`` in doubt, since a wrong ``text`` inflates scores and a wrong
``exact`` does not. A caller who knows better says so by name (``kinds`` of ``tooldna_metrics``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Literal

from agentkit.messages import JsonObject
from agentkit.tools.types.inference import type_of, type_of_value

FieldKind = Literal[
    "exact",  # right or wrong
    "selection",  # a list of what is chosen: a superset of the right choice is right in part
    "text",  # words: another wording is right in part
]

_FIXED = ("const", "contentEncoding", "contentMediaType", "enum", "format", "pattern")
"""Keywords after which a string is no longer free."""

_FREE_MEANINGS = frozenset({"address", "city", "colour", "country", "place", "region"})
"""Meanings that people word freely; all others (dates, ids, units, money, ...) are structured."""

_SURE = 0.75
"""How sure a guess of what a name means must be to take the field for structured."""

_MOST_CHARACTERS = 100
"""Longer texts are compared by their words alone: comparing characters takes cubic time at worst,
and spelling mistakes matter in short texts."""

_SAME_CHARACTERS = 0.8
_SAME_WORDS = 0.65  # the paper's "2023 used cars" and "used 2023 vehicles" share two thirds
_SHORTEST_PART = 3  # a letter or two begin too many words

_NOTATION = re.compile(r"[=<>*^{}\[\]|\\;+/()#]|\A[\W\d_]*\Z")
"""Signs of formulas, code and paths, or no letter: where one character changes everything."""

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")


def field_kind(name: str, schema: Any, *, description: str = "") -> FieldKind:
    """How values of a parameter are compared, by what its definition says.

    ``text``
        The declared type is string (or string or null), with no ``enum``, ``const``, ``format``,
        ``pattern`` or content encoding, and neither name nor description suggests something
        structured: a date, an id, an amount, an address on the web, a language, a currency, ...
    ``selection``
        A list whose items are strings, or that is declared ``uniqueItems``.
    ``exact``
        Everything else, undeclared types included.

    Args:
        name: The parameter.
        schema: Its schema.
        description: What its author says about it.

    Example:
        >>> field_kind("query", {"type": "string"}), field_kind("check_in_date", {"type": "string"})
        ('text', 'exact')
        >>> field_kind("fields", {"type": "array", "items": {"type": "string"}})
        'selection'
    """
    if not isinstance(schema, Mapping):
        return "exact"
    kind = _declared(schema)
    if kind == "array":
        items = schema.get("items")
        are_texts = isinstance(items, Mapping) and _declared(items) == "string"
        return "selection" if are_texts or schema.get("uniqueItems") is True else "exact"
    if kind != "string" or any(keyword in schema for keyword in _FIXED):
        return "exact"
    known = type_of(schema, name=name, description=description)
    sure = [guess.meaning for guess in known.meanings if guess.confidence >= _SURE]
    return "text" if _FREE_MEANINGS.issuperset(sure) else "exact"


def _declared(schema: JsonObject) -> Any:
    """The one declared type beside null; None where there are several or none."""
    alternatives = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(alternatives, list):
        parts = [part for part in alternatives if part != {"type": "null"}]
        plain = len(parts) == 1 and isinstance(parts[0], Mapping)
        return _declared(parts[0]) if plain and set(parts[0]) <= {"type", "items"} else None
    declared = schema.get("type")
    if isinstance(declared, list):
        rest = [kind for kind in declared if kind != "null"]
        return rest[0] if len(rest) == 1 else None
    return declared


def texts_agree(given: str, gold: str) -> bool:
    """Whether two free texts say about the same, though not in the same words.

    What is compared are words without case, width and punctuation. The texts agree when

    * the numbers in one are among the numbers in the other (``BMW X3`` is not ``BMW X5``), and
    * one is a run of words of the other, or its beginning (``Passat``, ``Passat380``), or they
      share two thirds of their words (Dice coefficient), or their characters agree to .8 (ratio
      of ``difflib``), which allows for spelling mistakes.

    Where the gold text is no prose but a date, an amount, an id, a path, a formula or code, only
    equal texts agree, whatever the parameter was taken for.

    On BFCL's free texts this takes 45% of the pairs of alternatives that its authors allow for one
    argument, and 3.4% of the pairs of gold values of different questions, most of which do say the
    same (``Boston``, ``Boston, MA``). RapidFuzz, MIT-licensed and the usual choice, finds 50% and
    4.1% with ``token_set_ratio`` at 80, and 21% and 2.0% with ``ratio`` at 80; for that the core
    does not need one more compiled dependency beside ``difflib`` of the standard library.

    Args:
        given: What was written.
        gold: What would have been right.

    Example:
        >>> texts_agree("Passat", "Passat380"), texts_agree("BMW X3", "BMW X5")
        (True, False)
        >>> texts_agree("2023 used cars", "used 2023 vehicles")
        True
        >>> texts_agree("2024-03-01", "2024-03-02")
        False
    """
    if given == gold:
        return True
    if _NOTATION.search(gold) or _NOTATION.search(given):
        return False
    one, other = _folded(given), _folded(gold)
    if not (one and other and _numbers_agree(one, other) and _words_agree(one, other)):
        return False
    return not _is_structured(gold)  # last, as it takes longest


def _is_structured(text: str) -> bool:
    return not _FREE_MEANINGS.issuperset(guess.meaning for guess in type_of_value(text).meanings)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _numbers_agree(one: str, other: str) -> bool:
    left, right = set(_NUMBER.findall(one)), set(_NUMBER.findall(other))
    return left <= right or right <= left


def _words_agree(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if f" {shorter} " in f" {longer} ":
        return True
    if len(shorter) >= _SHORTEST_PART and longer.startswith(shorter):
        return True
    left, right = set(one.split()), set(other.split())
    if 2 * len(left & right) >= _SAME_WORDS * (len(left) + len(right)):
        return True
    if len(longer) > _MOST_CHARACTERS:
        return False
    characters = SequenceMatcher(None, one, other, autojunk=False)
    return (
        characters.real_quick_ratio() >= _SAME_CHARACTERS
        and characters.quick_ratio() >= _SAME_CHARACTERS
        and characters.ratio() >= _SAME_CHARACTERS
    )
