"""What each keyword of JSON Schema may hold, and how a value that it may not hold is repaired.

Every reader takes the value as received and a ``note`` to report a repair to; it returns the
value to keep, or ``DROPPED``. The rules are those of the 2020-12 meta-schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from agentkit.tools.patterns import why_unusable

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect that we keep schemas in."""

PATTERN_DROPPED = "pattern dropped: it "
"""How the report of a pattern that is left out begins."""

DROPPED: Final = object()
"""Returned by a reader when nothing of the value can be kept."""

Note: TypeAlias = Callable[[str], None]
Reader: TypeAlias = Callable[[Any, Note], Any]

_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_IDENTIFIER = re.compile(r"[^#]*#?")
_NUMERIC = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?", re.ASCII)
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def as_boolean(value: object) -> bool | None:
    """The truth value that is meant, also by ``"true"`` or ``"yes"``; None for anything else."""
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().casefold()) if isinstance(value, str) else None


def _text(rule: object, note: Note) -> Any:
    if isinstance(rule, str):
        return rule
    if rule is None:
        note("null text dropped")
        return DROPPED
    note("value -> text")
    return json.dumps(rule, ensure_ascii=False, default=str)


def _word(rule: object, note: Note) -> Any:
    return rule if isinstance(rule, str) else _unusable(note, "not a string")


def _pattern(rule: object, note: Note) -> Any:
    why = why_unusable(rule) if isinstance(rule, str) else "is no text"
    if not why:
        return rule
    note(f"{PATTERN_DROPPED}{why}")
    return DROPPED


def _number(rule: object, note: Note) -> Any:
    number = rule
    if isinstance(rule, str) and _NUMERIC.fullmatch(rule.strip()):
        number = json.loads(rule.strip())
        note("text -> number")
    if isinstance(number, bool) or not isinstance(number, int | float):
        return _unusable(note, "not a number")
    is_finite = isinstance(number, int) or math.isfinite(number)
    return number if is_finite else _unusable(note, "not finite")


def _count(rule: object, note: Note) -> Any:
    found = _number(rule, note)
    if found is DROPPED or (found >= 0 and found == int(found)):
        return found
    return _unusable(note, "not a count")


def _factor(rule: object, note: Note) -> Any:
    found = _number(rule, note)
    return found if found is DROPPED or found > 0 else _unusable(note, "not positive")


def _flag(rule: object, note: Note) -> Any:
    found = as_boolean(rule)
    if found is None:
        return _unusable(note, "not true or false")
    if not isinstance(rule, bool):
        note("text -> boolean")
    return found


def _samples(rule: object, note: Note) -> Any:
    if isinstance(rule, list):
        return rule
    note("examples wrapped")
    return [rule]


def _members(rule: object, note: Note) -> Any:
    if isinstance(rule, list) and rule:
        return rule
    if rule is None or rule in ("", [], {}):
        note("empty enum dropped")
        return DROPPED
    note("enum without a list -> list")
    return list(rule) if isinstance(rule, Mapping) else [rule]


def _names(rule: object, note: Note) -> Any:
    if isinstance(rule, str) and as_boolean(rule) is None:
        note("one name -> list of one")
        return [rule]
    if not isinstance(rule, list):
        return _unusable(note, "not a list of names")
    unique = list(dict.fromkeys(name for name in rule if isinstance(name, str)))
    if len(unique) != len(rule):
        note("repeated or unusable names dropped")
    return unique


def _name_lists(rule: object, note: Note) -> Any:
    if not isinstance(rule, Mapping):
        return _unusable(note, "not a map of names")
    found = {key: _names(item, note) for key, item in rule.items()}
    return {key: item for key, item in found.items() if item is not DROPPED}


def _anchor(rule: object, note: Note) -> Any:
    fine = isinstance(rule, str) and _ANCHOR.fullmatch(rule)
    return rule if fine else _unusable(note, "not an anchor")


def _identifier(rule: object, note: Note) -> Any:
    fine = isinstance(rule, str) and _IDENTIFIER.fullmatch(rule)
    return rule if fine else _unusable(note, "not an identifier")


def _dialect(rule: object, note: Note) -> Any:
    return rule if rule == DIALECT else _unusable(note, "another dialect")


def _vocabulary(_rule: object, note: Note) -> Any:
    return _unusable(note, "for meta-schemas only")


def _unusable(note: Note, why: str) -> object:
    note(f"keyword dropped, {why}")
    return DROPPED


_KEYWORDS_OF: dict[Reader, str] = {
    _anchor: "$anchor $dynamicAnchor $recursiveAnchor",
    _count: (
        "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"
    ),
    _dialect: "$schema",
    _factor: "multipleOf",
    _flag: "deprecated readOnly uniqueItems writeOnly",
    _identifier: "$id",
    _members: "enum",
    _name_lists: "dependentRequired",
    _names: "required",
    _number: "exclusiveMaximum exclusiveMinimum maximum minimum",
    _pattern: "pattern",
    _samples: "examples",
    _text: "$comment description title",
    _vocabulary: "$vocabulary",
    _word: "$dynamicRef $recursiveRef $ref contentEncoding contentMediaType format",
}

READERS: Mapping[str, Reader] = MappingProxyType(
    {keyword: read for read, keywords in _KEYWORDS_OF.items() for keyword in keywords.split()}
)
"""The reader of each keyword whose value holds no further schema."""

SCHEMA_KEYWORDS = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that hold one schema."""

SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

SCHEMA_MAP_KEYWORDS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords that hold schemas by name."""

OBJECT_KEYWORDS = (
    SCHEMA_KEYWORDS
    | SCHEMA_MAP_KEYWORDS
    | {"const", "default", "dependentRequired", "example", "examples"}
)
"""Keywords whose value may be an object; a parameter may have such a name."""
