"""Types from words, as planner models write them: ``currency code``, ``list of numbers``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentkit.tools.types.inference import guesses_of_name, written_as
from agentkit.tools.types.lattice import ANY, Base, TypeSet, join
from agentkit.tools.types.meanings import MEANING_NAMES

_LONGEST = 80

_BASE_WORDS: Mapping[str, Base] = {
    "text": "string",
    "string": "string",
    "str": "string",
    "integer": "integer",
    "int": "integer",
    "whole number": "integer",
    "number": "number",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "true/false": "boolean",
    "yes/no": "boolean",
    "flag": "boolean",
    "null": "null",
    "none": "null",
    "object": "object",
    "dict": "object",
    "dictionary": "object",
    "record": "object",
    "json": "object",
    "array": "array",
    "list": "array",
}

_LIST = re.compile(
    r"(?:an? )?(?:list|array|sequence) of (?P<of>.+)"
    r"|(?:list|array)\s?[\[<(](?P<in>.+)[\]>)]"
    r"|(?P<before>.+?)(?:\[\]| list| array)"
)
_CHOICE = re.compile(r"\s*\|\s*|\s+or\s+")


def named_type(words: str) -> TypeSet:
    """The type that words name; ``ANY`` when they name none that is known.

    Example:
        >>> print(named_type("list of numbers"))
        array of (number)
        >>> print(named_type("number or null"), "/", named_type("true/false"))
        null | number / boolean
        >>> sorted(named_type("currency code").meanings), named_type("gizmo").is_any
        (['currency'], True)
    """
    text = " ".join(words[:_LONGEST].casefold().replace("_", " ").split()).strip(" .\"'`")
    choices = [_single(part) for part in _CHOICE.split(text)]
    return join(ANY if choice is None else choice for choice in choices)


def _single(text: str) -> TypeSet | None:
    base = _BASE_WORDS.get(text) or _BASE_WORDS.get(text.removesuffix("s"))
    if base is not None:
        return TypeSet.of(base)
    if (match := _LIST.fullmatch(text)) is not None:
        return TypeSet.list_of(_single(match[match.lastgroup or "of"]) or ANY)
    name = text.replace(" ", "_").removesuffix("s")
    if name in MEANING_NAMES:
        return _written(name)
    guesses = guesses_of_name(text)
    if guesses and guesses[0].meaning and guesses[0].confidence >= _SURE_ENOUGH:
        return _written(guesses[0].meaning)
    return None


_SURE_ENOUGH = 0.6


def _written(meaning: str) -> TypeSet:
    return TypeSet.of(*sorted(written_as(meaning)), meaning=meaning)
