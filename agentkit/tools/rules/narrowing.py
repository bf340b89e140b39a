"""The offered schema, narrowed by learned rules: never wider than the contract.

That it only narrows is held by how it is made. A keyword is added beside what is there, and
keywords of JSON Schema hold together; where the same keyword stands already, the tighter one stays
or both go under ``allOf``. Nothing is ever changed inside a reference or an alternative, because
one part may serve several places, and a narrower alternative can make ``oneOf`` accept more.

What a schema can not state, ``why_unstated`` tells; the sentence and the refusal state it still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.canonical import json_key, same_json
from agentkit.tools.fit import fits
from agentkit.tools.patterns import anchored, why_unsafe
from agentkit.tools.rules.malformed import is_finite
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
)
from agentkit.tools.schema import Steps, places, references, resolve_local

_Change: TypeAlias = Callable[[JsonObject], JsonObject | None]

_ANNOTATIONS = frozenset({"default", "deprecated", "description", "examples", "title"})
_OWN_BASE = frozenset({"$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
_UNSTATABLE = {
    "call_before": "a schema of arguments knows nothing of earlier calls",
    "condition": "JSON Schema can not compare the values of parameters with each other",
}
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})


def narrowed_schema(schema: JsonObject, rules: Iterable[Rule]) -> JsonObject:
    """The parameters schema as the rules narrow it; the same object when they state nothing.

    Args:
        schema: The contract, with or without descriptions.
        rules: What was learned. A rule that a schema can not state, or whose parameter the
            contract does not name, changes nothing.

    Example:
        >>> from agentkit.tools.rules import Between, OneOf
        >>> schema = {"type": "object", "properties": {"periods": {"type": "integer"}}}
        >>> rules = [OneOf(parameter="periods", values=(36, 48, 60)),
        ...          Between(parameter="periods", maximum=48)]
        >>> narrowed_schema(schema, rules)["properties"]
        {'periods': {'type': 'integer', 'enum': [36, 48, 60], 'maximum': 48}}
    """
    for rule in rules:
        narrowed = _narrowed(schema, rule)
        schema = schema if isinstance(narrowed, str) else narrowed
    return schema


def why_unstated(schema: JsonObject, rule: Rule) -> str:
    """Why a schema can not state a rule; empty when it can."""
    narrowed = _narrowed(schema, rule)
    return narrowed if isinstance(narrowed, str) else ""


def _narrowed(schema: JsonObject, rule: Rule) -> JsonObject | str:
    """The narrowed schema, or why there is none."""
    if isinstance(rule, CallBefore | Condition):
        return _UNSTATABLE[rule.kind]
    if isinstance(rule, Form) and rule.pattern and (why := why_unsafe(rule.pattern)):
        return f"the pattern is not fit for a schema: {why}"
    found = places(schema, rule.parameter)
    if not found:
        return f"the contract has no parameter {rule.parameter}"
    if why := _shared_by_path(schema):
        return why
    return _with_rule(schema, rule, found)


def _with_rule(
    schema: JsonObject, rule: OneOf | Between | Form | Requires, found: dict[Steps, list[Any]]
) -> JsonObject | str:
    if isinstance(rule, Requires):
        return _with_dependency(schema, rule)
    steps, parts = next(iter(found.items()))
    narrowed = _at(schema, steps, schema, partial(_stated, rule, parts, schema))
    if narrowed is not None:
        return narrowed
    what = "allows none of the values, or " if isinstance(rule, OneOf) else ""
    return f"the contract {what}has something at {rule.parameter} that can not be added to"


def _with_dependency(schema: JsonObject, rule: Requires) -> JsonObject | str:
    given = schema.get("dependentRequired", {})
    if not isinstance(given, Mapping) or not isinstance(given.get(rule.parameter, []), list):
        return "what the contract has as dependentRequired can not be added to"
    both = list(dict.fromkeys([*given.get(rule.parameter, []), *rule.others]))
    return {**schema, "dependentRequired": {**given, rule.parameter: both}}


def _shared_by_path(schema: JsonObject) -> str:
    """Why no part may be changed: another part refers to it by its place."""
    for reference in references(schema):
        if not reference.startswith(("#/$defs/", "#/definitions/")):
            return f"the contract refers to a part by {reference!r}, so a change would show there"
    if _DYNAMIC.isdisjoint(_keys(schema)):
        return ""
    return "the contract has references that depend on the place they are used in"


def _keys(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        yield from part
        part = list(part.values())
    for item in part if isinstance(part, list | tuple) else ():
        yield from _keys(item)


def _at(part: Any, steps: Steps, root: JsonObject, change: _Change) -> JsonObject | None:
    """A schema with a change at the end of the steps; None when it can not be made safely."""
    if part is True:
        part = {}
    if not isinstance(part, Mapping):
        return None
    part = part if part is root else _inlined(part, root)
    if not steps:
        return change(part)
    name, *rest = steps
    return (
        _in_items(part, tuple(rest), root, change)
        if name is None
        else _in_property(part, name, tuple(rest), root, change)
    )


def _in_property(
    part: JsonObject, name: str, rest: Steps, root: JsonObject, change: _Change
) -> JsonObject | None:
    own = part.get("properties", {})
    if not isinstance(own, Mapping):
        return None
    if name in own:
        below = _at(own[name], rest, root, change)
        return None if below is None else {**part, "properties": {**own, name: below}}
    below = _at({}, rest, root, change)  # it is named in an alternative
    if below is None or "unevaluatedProperties" in part:
        return None
    if "additionalProperties" in part:  # which speaks of the names beside it
        return _both(part, {"properties": {name: below}})
    return {**part, "properties": {**own, name: below}}


def _in_items(
    part: JsonObject, rest: Steps, root: JsonObject, change: _Change
) -> JsonObject | None:
    if "prefixItems" in part or "unevaluatedItems" in part:
        return None
    below = _at(part.get("items", {}), rest, root, change)
    return None if below is None else {**part, "items": below}


def _inlined(part: JsonObject, root: JsonObject) -> JsonObject:
    """A bare reference to a shared part as a copy of that part, which may then be narrowed."""
    seen = set[str]()
    while isinstance(reference := part.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        beside = part.keys() - {"$ref"}
        target = resolve_local(root, reference)
        if not beside <= _ANNOTATIONS or not isinstance(target, Mapping) or _OWN_BASE & {*target}:
            break
        part = {**target, **{key: part[key] for key in part if key in beside}}
    return part


def _both(part: JsonObject, more: JsonObject) -> JsonObject:
    given = part.get("allOf", ())
    return {**part, "allOf": [*(given if isinstance(given, list | tuple) else ()), more]}


def _stated(
    rule: OneOf | Between | Form, found: Sequence[Any], root: JsonObject, part: JsonObject
) -> JsonObject | None:
    """The schema of a parameter with what a rule says of it; None when no value would be left."""
    match rule:
        case OneOf():
            return _with_values(rule, found, root, part)
        case Between(measure="length" | "items"):
            what = "Length" if rule.measure == "length" else "Items"
            part = _tighter(part, f"min{what}", rule.minimum, max)
            return _tighter(part, f"max{what}", rule.maximum, min)
        case Between():
            part = _tighter(part, "minimum", rule.minimum, max)
            part = _tighter(part, "maximum", rule.maximum, min)
            part = _tighter(part, "exclusiveMinimum", rule.exclusive_minimum, max)
            part = _tighter(part, "exclusiveMaximum", rule.exclusive_maximum, min)
            step = rule.multiple_of
            return _with(part, "multipleOf", step if step is not None and step > 0 else None)
        case Form():
            part = _with(part, "pattern", anchored(rule.pattern) if rule.pattern else None)
            return _with(part, "format", rule.format or None)


def _with_values(
    rule: OneOf, found: Sequence[Any], root: JsonObject, part: JsonObject
) -> JsonObject | None:
    """The values that the contract allows as well."""
    kept = [
        value
        for value in rule.values
        if fits(value, part, root=root) is not False
        and any(fits(value, schema, root=root) is not False for schema in found)
    ]
    if isinstance(given := part.get("enum"), list):
        members = set(map(json_key, given))
        kept = [value for value in kept if json_key(value) in members]
    return {**part, "enum": kept} if kept else None


def _tighter(
    part: JsonObject,
    keyword: str,
    limit: float | None,
    choose: Callable[[float, float], float],
) -> JsonObject:
    given = part.get(keyword)
    if limit is None or not is_finite(limit):
        return part
    if isinstance(given, bool) or not isinstance(given, int | float):
        return _with(part, keyword, limit)
    return {**part, keyword: choose(given, limit)}


def _with(part: JsonObject, keyword: str, value: Any) -> JsonObject:
    if value is None:
        return part
    if keyword not in part:
        return {**part, keyword: value}
    return part if same_json(part[keyword], value) else _both(part, {keyword: value})
