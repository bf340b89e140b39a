"""What each keyword of JSON Schema may hold, how a wrong value is repaired, and names of types.

The rules are those of the 2020-12 meta-schema; type names are as people write them in Python, Java,
JavaScript and Go.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from agentkit.tools.fit import JSON_TYPES
from agentkit.tools.patterns import is_compilable, why_unusable
from agentkit.tools.schema import SCHEMA_KEYWORDS, SCHEMA_MAP_KEYWORDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect that we keep schemas in."""

PATTERN_DROPPED = "pattern dropped: it "
"""How the report of a pattern that is left out begins."""

DROPPED: Final = object()
"""Returned by a repair when nothing of the value can be kept."""

OBJECT_KEYWORDS = (
    SCHEMA_KEYWORDS
    | SCHEMA_MAP_KEYWORDS
    | {"const", "default", "dependentRequired", "example", "examples"}
)
"""Keywords whose value may be an object; a parameter may have such a name."""

Note: TypeAlias = Callable[[str], None]
Repair: TypeAlias = Callable[[Any, Note], Any]


class Values(NamedTuple):
    """What a keyword may hold.

    Attributes:
        are: Whether a value is fine as it is.
        repair: What to keep of one that is not, or ``DROPPED``; it reports what it does.
    """

    are: Callable[[Any], bool]
    repair: Repair


def as_boolean(value: object) -> bool | None:
    """The truth value that is meant, also by ``"true"`` or ``"yes"``; None for anything else."""
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.strip().casefold()) if isinstance(value, str) else None


_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_IDENTIFIER = re.compile(r"[^#]*#?")
_NUMERIC = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,17})?", re.ASCII)


# --- what is fine ---------------------------------------------------------------------------------


def _is_text(rule: Any) -> bool:
    return isinstance(rule, str)


def _is_number(rule: Any) -> bool:
    if isinstance(rule, bool) or not isinstance(rule, int | float):
        return False
    return isinstance(rule, int) or math.isfinite(rule)


def _is_count(rule: Any) -> bool:
    return _is_number(rule) and rule >= 0 and rule == int(rule)


def _is_names(rule: Any) -> bool:
    return (
        isinstance(rule, list)
        and all(isinstance(name, str) for name in rule)
        and len(set(rule)) == len(rule)
    )


# --- repairs --------------------------------------------------------------------------------------


def _dropping(why: str) -> Repair:
    def drop(_rule: Any, note: Note) -> Any:
        note(f"keyword dropped, {why}")
        return DROPPED

    return drop


def _numeric(are: Callable[[Any], bool], why: str) -> Values:
    def repair(rule: Any, note: Note) -> Any:
        if isinstance(rule, str) and _NUMERIC.fullmatch(rule.strip()):
            rule = json.loads(rule.strip())
            note("text -> number")
            if are(rule):
                return rule
        if _is_number(rule):
            return _dropping(why)(rule, note)
        is_float = isinstance(rule, float)
        return _dropping("not finite" if is_float else "not a number")(rule, note)

    return Values(are, repair)


def _as_text(rule: Any, note: Note) -> Any:
    note("null text dropped" if rule is None else "value -> text")
    return DROPPED if rule is None else json.dumps(rule, ensure_ascii=False, default=str)


def _without_pattern(rule: Any, note: Note) -> Any:
    note(f"{PATTERN_DROPPED}{why_unusable(rule) if isinstance(rule, str) else 'is no text'}")
    return DROPPED


def _as_flag(rule: Any, note: Note) -> Any:
    found = as_boolean(rule)
    if found is None:
        return _dropping("not true or false")(rule, note)
    note("text -> boolean")
    return found


def _as_samples(rule: Any, note: Note) -> Any:
    note("examples wrapped")
    return [rule]


def _as_members(rule: Any, note: Note) -> Any:
    if rule is None or rule in ("", [], {}):
        note("empty enum dropped")
        return DROPPED
    note("enum without a list -> list")
    return list(rule) if isinstance(rule, Mapping) else [rule]


def _as_names(rule: Any, note: Note) -> Any:
    if isinstance(rule, str) and as_boolean(rule) is None:
        note("one name -> list of one")
        return [rule]
    if not isinstance(rule, list):
        return _dropping("not a list of names")(rule, note)
    note("repeated or unusable names dropped")
    return list(dict.fromkeys(name for name in rule if isinstance(name, str)))


def _as_name_lists(rule: Any, note: Note) -> Any:
    if not isinstance(rule, Mapping):
        return _dropping("not a map of names")(rule, note)
    found = {key: one if _is_names(one) else _as_names(one, note) for key, one in rule.items()}
    return {key: one for key, one in found.items() if one is not DROPPED}


_VALUES_OF: Mapping[str, Values] = {
    "$anchor $dynamicAnchor $recursiveAnchor": Values(
        lambda rule: _is_text(rule) and _ANCHOR.fullmatch(rule) is not None,
        _dropping("not an anchor"),
    ),
    "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties": (
        _numeric(_is_count, "not a count")
    ),
    "$schema": Values(lambda rule: rule == DIALECT, _dropping("another dialect")),
    "multipleOf": _numeric(lambda rule: _is_number(rule) and rule > 0, "not positive"),
    "deprecated readOnly uniqueItems writeOnly": Values(
        lambda rule: isinstance(rule, bool), _as_flag
    ),
    "$id": Values(
        lambda rule: _is_text(rule) and _IDENTIFIER.fullmatch(rule) is not None,
        _dropping("not an identifier"),
    ),
    "enum": Values(lambda rule: isinstance(rule, list) and bool(rule), _as_members),
    "dependentRequired": Values(
        lambda rule: isinstance(rule, dict) and all(map(_is_names, rule.values())), _as_name_lists
    ),
    "required": Values(_is_names, _as_names),
    "exclusiveMaximum exclusiveMinimum maximum minimum": _numeric(_is_number, ""),
    "pattern": Values(lambda rule: _is_text(rule) and is_compilable(rule), _without_pattern),
    "examples": Values(lambda rule: isinstance(rule, list), _as_samples),
    "$comment description title": Values(_is_text, _as_text),
    "$vocabulary": Values(lambda _rule: False, _dropping("for meta-schemas only")),
    "$dynamicRef $recursiveRef $ref contentEncoding contentMediaType format": Values(
        _is_text, _dropping("not a string")
    ),
}

VALUES: Mapping[str, Values] = {
    keyword: values for keywords, values in _VALUES_OF.items() for keyword in keywords.split()
}
"""What each keyword may hold whose value holds no further schema."""


# --- names of types -------------------------------------------------------------------------------

_SPELLINGS = {
    "array": (
        "arraylist collection frozenset hashset iterable iterator linkedlist list sequence set "
        "slice tuple vector"
    ),
    "boolean": "bool",
    "integer": (
        "bigint biginteger byte int int16 int32 int64 int8 long short uint uint16 uint32 uint64 "
        "uint8 unsigned"
    ),
    "null": "nil none nonetype undefined void",
    "number": "bigdecimal decimal double float float32 float64 numeric real",
    "object": (
        "defaultdict dict dictionary hashmap hashtable json linkedhashmap map mapping ordereddict "
        "record struct treemap typeddict"
    ),
    "string": (
        "char character charsequence date datetime email str text time timestamp uri url uuid"
    ),
}
_ANYTHING = frozenset({"any", "interface{}", "mixed", "unknown", "*", "?"})
_BY_SPELLING: Mapping[str, str] = {
    **{spelling: name for name, group in _SPELLINGS.items() for spelling in group.split()},
    **{name: name for name in JSON_TYPES},
}
_GENERIC = re.compile(r"(?P<outer>[\w.]+)\s*[\[<](?P<inner>.*)[\]>]")
_MAX_LENGTH = 200
_MAX_NESTING = 8


def read_type_name(text: str, *, nesting: int = 0) -> dict[str, Any] | None:
    """The schema that a type's name stands for, or None when nobody could tell.

    Args:
        text: Such as ``dict``, ``ArrayList<String>``, ``List[float]``, ``int | None``, ``str[]``.
        nesting: How many brackets were opened already.

    Returns:
        A schema with at most ``type``, ``items``, ``additionalProperties`` and ``anyOf``; empty
        for "any type".

    Example:
        >>> read_type_name("HashMap"), read_type_name("any"), read_type_name("Date (yyyy)")
        ({'type': 'object'}, {}, None)
        >>> read_type_name("list[int] | None")
        {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    text = text.strip()
    name = text.casefold().removeprefix("typing.").removeprefix("java.lang.")
    if name in _ANYTHING:
        return {}
    if name in _BY_SPELLING:
        return {"type": _BY_SPELLING[name]}
    if len(text) > _MAX_LENGTH or nesting > _MAX_NESTING:
        return None
    alternatives = _split(text, "|")
    if len(alternatives) > 1:
        return _union([read_type_name(part, nesting=nesting + 1) for part in alternatives])
    if text.endswith("[]"):
        return _array_of(read_type_name(text[:-2], nesting=nesting + 1))
    generic = _GENERIC.fullmatch(text)
    return None if generic is None else _generic(generic["outer"], generic["inner"], nesting + 1)


def _generic(outer: str, inner: str, nesting: int) -> dict[str, Any] | None:
    outer = outer.casefold().removeprefix("typing.")
    parts = [read_type_name(part, nesting=nesting) for part in _split(inner, ",")]
    if outer == "optional":
        return _union([*parts, {"type": "null"}])
    if outer == "union":
        return _union(parts)
    kind = _BY_SPELLING.get(outer)
    if kind == "array":
        return _array_of(parts[0] if all(part == parts[0] for part in parts) else {})
    if kind == "object":
        return {"type": "object"} | ({"additionalProperties": parts[-1]} if parts[-1] else {})
    return None


def _array_of(items: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if items is None else {"type": "array", "items": items}


def _union(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    branches: list[dict[str, Any]] = []
    for part in parts:
        if part is None:
            return None
        if not part:
            return {}
        if part not in branches:
            branches.append(part)
    if len(branches) == 1:
        return branches[0]
    if all(branch.keys() == {"type"} and isinstance(branch["type"], str) for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}


def _split(text: str, separator: str) -> list[str]:
    """Split at separators that stand outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[<") - (character in "]>")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()] or [""]
