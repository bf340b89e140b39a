"""``fits``: does a value satisfy a schema? A quick answer from the standard library alone.

It answers True, False, or None for "not sure", and is never wrong when it is sure: the test
compares it with jsonschema. Valid calls, which are nearly all calls, are thereby recognised
without loading a validator, and coercion can choose between the branches of ``anyOf``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.formats import FORMATS
from agentkit.tools.patterns import pattern_holds, pattern_steps
from agentkit.tools.references import resolve_local

Verdict: TypeAlias = bool | None

_MAX_DEPTH = 64
_CHARACTERS_A_STEP = 256
_NAMES_A_STEP = 8

_BEYOND_US = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "contains",
        "contentSchema",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "multipleOf",
        "patternProperties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that constrain and that only the full validator judges."""


_ANNOTATIONS = frozenset({"default", "description", "examples", "title"})
"""Frequent keywords that constrain nothing. Unknown ones do not either."""


def fits(
    value: Any, schema: Any, *, root: JsonObject | None = None, steps: Steps | None = None
) -> Verdict:
    """Whether JSON data satisfy a schema (2020-12), as far as that is quick to say.

    Args:
        value: Decoded JSON.
        schema: The schema, or one part of a document.
        root: The document that local references point into; ``schema`` itself when omitted.
        steps: What may still be spent, when several questions share it.

    Returns:
        True or False when certain; None when the schema is broken, is nested too deeply, asks for
        too many steps or uses a keyword that is left to the full validator.

    Example:
        >>> fits(3, {"type": "integer", "minimum": 1}), fits("3", {"type": "integer"})
        (True, False)
    """
    document = root if root is not None else schema if isinstance(schema, dict) else {}
    try:
        return _fits(value, schema, _Document(document, steps or Steps()), 0)
    except RecursionError:  # data that are compared as a whole
        return None


@dataclass(slots=True)
class Steps:
    """How much work is left, in schemas looked at.

    The bound matters for schemas whose references multiply without looking deeper into the value.
    """

    left: int = 10_000


class _Document(NamedTuple):
    """What local references point into, and how much work is left."""

    root: JsonObject
    steps: Steps


class _Scope(NamedTuple):
    """Where an applicator stands: its own schema, the document, and how deep."""

    schema: JsonObject
    document: _Document
    depth: int

    def fits(self, value: Any, part: Any) -> Verdict:
        return _fits(value, part, self.document, self.depth + 1)


def _fits(value: Any, schema: Any, document: _Document, depth: int) -> Verdict:
    if isinstance(schema, bool):
        return schema
    steps = document.steps
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or not _afforded(value, schema, steps):
        return None
    verdict: Verdict = True
    for keyword, rule in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        if keyword in _CHECKS:
            found = _CHECKS[keyword](value, rule)
        elif keyword in _COMPARISONS:
            found = _COMPARISONS[keyword](value, rule, steps)
        elif keyword in _APPLICATORS:
            found = _APPLICATORS[keyword](value, rule, _Scope(schema, document, depth))
        elif keyword in _BEYOND_US or (keyword == "$id" and depth):
            found = None
        else:
            continue
        if found is False:
            return False
        verdict = verdict if found else None
    return verdict


def _afforded(value: Any, schema: JsonObject, steps: Steps) -> bool:
    """Count one schema that is looked at; a long value or a wide schema counts for more."""
    steps.left -= 1
    if len(schema) > _NAMES_A_STEP:
        steps.left -= len(schema) // _NAMES_A_STEP
    if isinstance(value, str):
        steps.left -= len(value) // _CHARACTERS_A_STEP
    elif isinstance(value, list | dict):
        steps.left -= len(value) // _NAMES_A_STEP
    return steps.left >= 0


def _all(verdicts: list[Verdict]) -> Verdict:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def same_json(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON data: ``1`` equals ``1.0`` but not ``true``."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    return bool(left == right)


_TYPE_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def is_of_type(value: Any, name: object) -> Verdict:
    """Whether ``value`` has the JSON Schema type ``name``; None for a type that is not one."""
    test = _TYPE_TESTS.get(name) if isinstance(name, str) else None
    return None if test is None else test(value)


def _type(value: Any, rule: Any) -> Verdict:
    if isinstance(rule, str):
        test = _TYPE_TESTS.get(rule)
        return None if test is None else test(value)
    if not isinstance(rule, list) or not rule:
        return None
    return _any([is_of_type(value, name) for name in rule])


def _any(verdicts: list[Verdict]) -> Verdict:
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _enum(value: Any, rule: Any, steps: Steps) -> Verdict:
    if not isinstance(rule, list):
        return None
    steps.left -= len(rule) // _NAMES_A_STEP
    known = isinstance(value, list | dict)
    if steps.left < 0 or (known and not _counted(value, steps, times=len(rule))):
        return None
    return any(same_json(value, item) for item in rule)


def _const(value: Any, rule: Any, steps: Steps) -> Verdict:
    return _enum(value, [rule], steps)


def _counted(value: Any, steps: Steps, *, times: int = 1) -> bool:
    """Count the parts of a value that is looked at as a whole, as long as steps are left."""
    waiting = [value]
    while waiting and steps.left >= 0:
        part = waiting.pop()
        steps.left -= times
        if isinstance(part, list | dict):
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return steps.left >= 0


def _reference(value: Any, rule: Any, scope: _Scope) -> Verdict:
    target = resolve_local(scope.document.root, rule) if isinstance(rule, str) else None
    return None if target is None else scope.fits(value, target)


def _all_of(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    return _all([scope.fits(value, branch) for branch in rule])


def _any_of(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    return _any([scope.fits(value, branch) for branch in rule])


def _one_of(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    verdicts = [scope.fits(value, branch) for branch in rule]
    if verdicts.count(True) > 1:
        return False
    return None if None in verdicts else verdicts.count(True) == 1


def _not(value: Any, rule: Any, scope: _Scope) -> Verdict:
    verdict = scope.fits(value, rule)
    return None if verdict is None else not verdict


def _properties(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, dict):
        return None
    if not isinstance(value, dict):
        return True
    scope.document.steps.left -= len(rule) // _NAMES_A_STEP
    return _all([scope.fits(value[name], part) for name, part in rule.items() if name in value])


def _additional(value: Any, rule: Any, scope: _Scope) -> Verdict:
    known = scope.schema.get("properties", {})
    if "patternProperties" in scope.schema or not isinstance(known, dict):
        return None
    if not isinstance(value, dict):
        return True
    return _all([scope.fits(item, rule) for name, item in value.items() if name not in known])


def _required(value: Any, rule: Any, steps: Steps) -> Verdict:
    if not isinstance(rule, list):
        return None
    steps.left -= len(rule) // _NAMES_A_STEP
    return not isinstance(value, dict) or all(name in value for name in rule)


def _items(value: Any, rule: Any, scope: _Scope) -> Verdict:
    prefix = scope.schema.get("prefixItems", [])
    if not isinstance(prefix, list) or isinstance(rule, list):
        return None
    if not isinstance(value, list):
        return True
    return _all([scope.fits(item, rule) for item in value[len(prefix) :]])


def _prefix(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    if not isinstance(value, list):
        return True
    pairs = zip(value, rule, strict=False)
    return _all([scope.fits(item, part) for item, part in pairs])


def _unique(value: Any, rule: Any, steps: Steps) -> Verdict:
    if not isinstance(rule, bool):
        return None
    if not rule or not isinstance(value, list):
        return True
    return not has_duplicates(value) if _counted(value, steps) else None


def has_duplicates(items: list[Any]) -> bool:
    """Whether two items of a list are the same JSON data."""
    return len(set(map(json_key, items))) < len(items)


def json_key(value: Any) -> Hashable:
    """What values that are the same JSON data, and no others, have in common (``same_json``)."""
    if isinstance(value, list):
        return ("list", *map(json_key, value))
    if isinstance(value, dict):
        return frozenset((name, json_key(item)) for name, item in value.items())
    return (value,) if isinstance(value, bool) else value  # `True == 1` in Python alone


def _pattern(value: Any, rule: Any, steps: Steps) -> Verdict:
    if not isinstance(rule, str):
        return None
    if not isinstance(value, str):
        return True
    steps.left -= pattern_steps(rule, value)
    if steps.left < 0:
        return None
    try:
        return pattern_holds(rule, value)
    except ValueError:
        return None


def _format(value: Any, rule: Any) -> Verdict:
    check = FORMATS.get(rule) if isinstance(rule, str) else None
    return check is None or not isinstance(value, str) or check(value)


_Check: TypeAlias = Callable[[Any, Any], Verdict]


def _measured(
    kind: str, measure: Callable[[Any], Any], holds: Callable[[Any, Any], bool]
) -> _Check:
    """A check of one bound on values of one type; it says nothing about values of other types."""

    def check(value: Any, rule: Any) -> Verdict:
        if isinstance(rule, bool) or not isinstance(rule, int | float):
            return None
        return not is_of_type(value, kind) or holds(measure(value), rule)

    return check


def _itself(value: Any) -> Any:
    return value


def _at_least(left: Any, right: Any) -> bool:
    return bool(left >= right)


def _at_most(left: Any, right: Any) -> bool:
    return bool(left <= right)


_CHECKS: Mapping[str, _Check] = {
    "exclusiveMaximum": _measured("number", _itself, lambda left, right: left < right),
    "exclusiveMinimum": _measured("number", _itself, lambda left, right: left > right),
    "format": _format,
    "maxItems": _measured("array", len, _at_most),
    "maxLength": _measured("string", len, _at_most),
    "maxProperties": _measured("object", len, _at_most),
    "maximum": _measured("number", _itself, _at_most),
    "minItems": _measured("array", len, _at_least),
    "minLength": _measured("string", len, _at_least),
    "minProperties": _measured("object", len, _at_least),
    "minimum": _measured("number", _itself, _at_least),
    "type": _type,
}
"""Keywords that look at the value alone."""

_COMPARISONS: Mapping[str, Callable[[Any, Any, Steps], Verdict]] = {
    "const": _const,
    "enum": _enum,
    "pattern": _pattern,
    "required": _required,
    "uniqueItems": _unique,
}
"""Keywords whose cost grows with the rule or the value."""

_APPLICATORS: Mapping[str, Callable[[Any, Any, _Scope], Verdict]] = {
    "$ref": _reference,
    "additionalProperties": _additional,
    "allOf": _all_of,
    "anyOf": _any_of,
    "items": _items,
    "not": _not,
    "oneOf": _one_of,
    "prefixItems": _prefix,
    "properties": _properties,
}
"""Keywords that apply further schemas."""
