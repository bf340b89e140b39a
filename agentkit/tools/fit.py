"""Does a value fit a JSON Schema (2020-12)? A quick answer from the standard library alone.

``fits`` answers True, False, or None for "not sure", and is never wrong when it is sure: a test
compares it with jsonschema. So valid calls, which are nearly all calls, are recognised without
loading a validator, and coercion can choose between the branches of ``anyOf``. What is wrong with a
value, ``agentkit.tools.bounded`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.canonical import json_key, same_json
from agentkit.tools.formats import FORMATS
from agentkit.tools.patterns import pattern_holds, pattern_steps
from agentkit.tools.schema import resolve_local

Verdict: TypeAlias = bool | None

_MAX_DEPTH = 64
_CHARACTERS_A_STEP = 256
_NAMES_A_STEP = 8


@dataclass(slots=True)
class Steps:
    """How much work is left, in schemas looked at.

    The bound matters for schemas whose references multiply without looking deeper into the value.
    """

    left: int = 10_000


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
        return _fits(value, schema, _Scope({}, document, steps or Steps(), -1))
    except RecursionError:  # data that are compared as a whole
        return None


class _Scope(NamedTuple):
    """Where a keyword stands: its schema, the document, the work that is left, and how deep."""

    schema: JsonObject
    root: JsonObject
    steps: Steps
    depth: int


def _fits(value: Any, schema: Any, above: _Scope) -> Verdict:
    if isinstance(schema, bool):
        return schema
    steps, depth = above.steps, above.depth + 1
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or not _afforded(value, schema, steps):
        return None
    verdict: Verdict = True
    scope = None
    for keyword, rule in schema.items():
        if (look := _LOOKS.get(keyword)) is not None:
            found = look(value, rule)
        elif (check := _CHECKS.get(keyword)) is not None:
            scope = scope or _Scope(schema, above.root, steps, depth)
            found = check(value, rule, scope)
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


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    found: Verdict = True
    for verdict in verdicts:
        if verdict is False:
            return False
        found = found if verdict else None
    return found


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    found: Verdict = False
    for verdict in verdicts:
        if verdict:
            return True
        found = None if verdict is None else found
    return found


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

JSON_TYPES = (*_TYPE_TESTS,)
"""The type names of JSON Schema."""


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
    return _any(is_of_type(value, name) for name in rule)


def _format(value: Any, rule: Any) -> Verdict:
    check = FORMATS.get(rule) if isinstance(rule, str) else None
    return check is None or not isinstance(value, str) or check(value)


_Look: TypeAlias = Callable[[Any, Any], Verdict]


def _bound(kind: str, holds: Callable[[Any, Any], bool]) -> _Look:
    """A check of one bound on values of one type; it says nothing about values of other types."""
    test = _TYPE_TESTS[kind]

    def check(value: Any, rule: Any) -> Verdict:
        if isinstance(rule, bool) or not isinstance(rule, int | float):
            return None
        return not test(value) or bool(holds(value, rule))

    return check


def _at_least(value: Any, limit: Any) -> bool:
    return bool(len(value) >= limit)


def _at_most(value: Any, limit: Any) -> bool:
    return bool(len(value) <= limit)


_SIZES = {"Length": "string", "Items": "array", "Properties": "object"}
_LOOKS: Mapping[str, _Look] = {
    "type": _type,
    "format": _format,
    "minimum": _bound("number", lambda value, limit: value >= limit),
    "maximum": _bound("number", lambda value, limit: value <= limit),
    "exclusiveMinimum": _bound("number", lambda value, limit: value > limit),
    "exclusiveMaximum": _bound("number", lambda value, limit: value < limit),
    **{f"min{size}": _bound(kind, _at_least) for size, kind in _SIZES.items()},
    **{f"max{size}": _bound(kind, _at_most) for size, kind in _SIZES.items()},
}
"""Keywords that look at the value alone."""


def _enum(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    steps = scope.steps
    steps.left -= len(rule) // _NAMES_A_STEP
    is_compound = isinstance(value, list | dict)
    if steps.left < 0 or (is_compound and not _counted(value, steps, times=len(rule))):
        return None
    return any(same_json(value, item) for item in rule)


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
    target = resolve_local(scope.root, rule) if isinstance(rule, str) else None
    return None if target is None else _fits(value, target, scope)


def _branches(judge: Callable[[list[Verdict]], Verdict]) -> _Check:
    """A check of a keyword that holds a list of schemas for the same value."""

    def check(value: Any, rule: Any, scope: _Scope) -> Verdict:
        if not isinstance(rule, list):
            return None
        return judge([_fits(value, branch, scope) for branch in rule])

    return check


def _exactly_one(verdicts: list[Verdict]) -> Verdict:
    if verdicts.count(True) > 1:
        return False
    return None if None in verdicts else verdicts.count(True) == 1


def _not(value: Any, rule: Any, scope: _Scope) -> Verdict:
    verdict = _fits(value, rule, scope)
    return None if verdict is None else not verdict


def _properties(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, dict):
        return None
    if not isinstance(value, dict):
        return True
    scope.steps.left -= len(rule) // _NAMES_A_STEP
    return _all(_fits(value[name], part, scope) for name, part in rule.items() if name in value)


def _additional(value: Any, rule: Any, scope: _Scope) -> Verdict:
    known = scope.schema.get("properties", {})
    if "patternProperties" in scope.schema or not isinstance(known, dict):
        return None
    if not isinstance(value, dict):
        return True
    return _all(_fits(item, rule, scope) for name, item in value.items() if name not in known)


def _required(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    scope.steps.left -= len(rule) // _NAMES_A_STEP
    return not isinstance(value, dict) or all(name in value for name in rule)


def _items(value: Any, rule: Any, scope: _Scope) -> Verdict:
    prefix = scope.schema.get("prefixItems", [])
    if not isinstance(prefix, list) or isinstance(rule, list):
        return None
    if not isinstance(value, list):
        return True
    return _all(_fits(item, rule, scope) for item in value[len(prefix) :])


def _prefix(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, list):
        return None
    if not isinstance(value, list):
        return True
    return _all(_fits(item, part, scope) for item, part in zip(value, rule, strict=False))


def _unique(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, bool):
        return None
    if not rule or not isinstance(value, list):
        return True
    return not has_duplicates(value) if _counted(value, scope.steps) else None


def has_duplicates(items: list[Any]) -> bool:
    """Whether two items of a list are the same JSON data."""
    return len(set(map(json_key, items))) < len(items)


def _pattern(value: Any, rule: Any, scope: _Scope) -> Verdict:
    if not isinstance(rule, str):
        return None
    if not isinstance(value, str):
        return True
    scope.steps.left -= pattern_steps(rule, value)
    if scope.steps.left < 0:
        return None
    try:
        return pattern_holds(rule, value)
    except ValueError:
        return None


_Check: TypeAlias = Callable[[Any, Any, _Scope], Verdict]

_BEYOND_US = (
    "$dynamicRef $recursiveRef contains contentSchema dependentRequired dependentSchemas else if "
    "maxContains minContains multipleOf patternProperties propertyNames then unevaluatedItems "
    "unevaluatedProperties"
)
"""Keywords that constrain and that only the full validator judges; unknown ones do not."""

_CHECKS: Mapping[str, _Check] = {
    **dict.fromkeys(_BEYOND_US.split(), lambda *_: None),
    "$id": lambda _value, _rule, scope: None if scope.depth else True,
    "$ref": _reference,
    "additionalProperties": _additional,
    "allOf": _branches(_all),
    "anyOf": _branches(_any),
    "const": lambda value, rule, scope: _enum(value, [rule], scope),
    "enum": _enum,
    "items": _items,
    "not": _not,
    "oneOf": _branches(_exactly_one),
    "pattern": _pattern,
    "prefixItems": _prefix,
    "properties": _properties,
    "required": _required,
    "uniqueItems": _unique,
}
"""Keywords that apply further schemas, or whose cost grows with the rule or the value."""
