"""A learned rule as models see it: its sentence, and the offered schema that it narrows.

The narrowed schema is never wider than the contract, and that is held by how it is made. A keyword
is added beside what is there, and keywords of JSON Schema hold together; where the same keyword
stands already, the tighter one stays or both go under ``allOf``. Nothing is ever changed inside a
reference or an alternative, because one part may serve several places, and a narrower alternative
can make ``oneOf`` accept more. What a schema cannot state, the sentence and the refusal state
still.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_finite, json_key, same_json
from agentkit.tools.patterns import FORMAT_EXAMPLES, anchored, why_unsafe
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
    Takes,
)
from agentkit.tools.schema import Steps, parts_at, path_steps, references, schemas_in
from agentkit.tools.schema_validator import fits

# --- the sentence ---------------------------------------------------------------------------------

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_FORMAT_WORDS = {
    "date": "a date (YYYY-MM-DD)",
    "time": "a time (HH:MM:SS)",
    "date-time": "a date with a time (YYYY-MM-DDTHH:MM:SS)",
    "email": "an e-mail address",
    "uri": "a URI",
    "uuid": "a UUID",
}


def rule_sentence(rule: Rule) -> str:
    """The rule as one sentence.

    Example:
        >>> rule_sentence(OneOf(parameter="periods", values=(36, 48, 60)))
        'periods must be one of 36, 48, 60.'
        >>> rule_sentence(Between(parameter="amount", minimum=500, multiple_of=100, unit="euros"))
        'amount must be at least 500 and a multiple of 100, in euros.'
        >>> rule_sentence(Between(parameter="rate", exclusive_minimum=0, maximum=1))
        'rate must be more than 0 and at most 1.'
        >>> rule_sentence(Between(parameter="title", measure="length", maximum=80))
        'title must have at most 80 characters.'
        >>> rule_sentence(CallBefore(tool="find_customer", parameter="customer_id"))
        'Call find_customer first; customer_id comes from its result.'
        >>> rule_sentence(Takes(parameter="points", types=("number[]",), required=True, calls=4))
        'points must be given, as a list of numbers (discovered from 4 calls).'
    """
    match rule:
        case OneOf() | Between() | Form():
            return f"{rule.parameter} {demand(rule)}."
        case Requires():
            others = " and ".join(filter(None, (", ".join(rule.others[:-1]), *rule.others[-1:])))
            return f"When {rule.parameter} is given, {others} must be given too."
        case Condition():
            sentence = " ".join(rule.words.split())
            is_ended = not sentence or unicodedata.category(sentence[-1]) == "Po"  # in any script
            return sentence if is_ended else f"{sentence}."
        case CallBefore():
            source = f"; {rule.parameter} comes from its result" if rule.parameter else ""
            return f"Call {rule.tool} first{source}."
        case Takes():
            values = " or ".join(map(_type_words, rule.types))
            given = f"{'must' if rule.required else 'may'} be given{values and f', as {values}'}"
            calls = f"{rule.calls} call{'' if rule.calls == 1 else 's'}"
            return f"{rule.parameter} {given} (discovered from {calls})."


_TYPE_WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "object": "an object",
    "array": "a list",
}


def _type_words(name: str) -> str:
    if name.endswith("[]"):
        return f"a list of {_type_words(name[:-2]).removeprefix('a ')}s"
    return _TYPE_WORDS.get(name, name if name == "null" else f"a {name}")


def demand(rule: OneOf | Between | Form) -> str:
    """The constraint on a parameter's value, as the end of a sentence without its full stop."""
    match rule:
        case OneOf():
            shown = ", ".join(map(scalar_text, rule.values))
            return f"must be {'' if len(rule.values) == 1 else 'one of '}{shown}"
        case Between():
            return _range(rule)
        case Form():
            words = rule.words or _FORMAT_WORDS.get(rule.format, rule.format)
            example = rule.example or FORMAT_EXAMPLES.get(rule.format, "")
            return f"must be {words or f'like {rule.pattern}'}{example and f', such as {example}'}"


def scalar_text(value: Any) -> str:
    """A value as it is written in a call: texts in double quotes."""
    try:
        return _ENCODER.encode(value)
    except ValueError:  # an integer with more digits than Python prints
        return "a number of very many digits"


_COUNTED = {"length": "character", "items": "item"}


def _range(rule: Between) -> str:
    bounds = _bounds(rule)
    if counted := _COUNTED.get(rule.measure):
        plural = "" if {*rule.lows, *rule.highs} == {1} else "s"
        return f"must have {bounds} {counted}{plural}"
    step = f"a multiple of {scalar_text(rule.multiple_of)}" if rule.multiple_of is not None else ""
    limits = " and ".join(filter(None, (bounds, step)))
    if not limits:
        return f"is in {rule.unit}"
    return f"must be {limits}, in {rule.unit}" if rule.unit else f"must be {limits}"


def _bounds(rule: Between) -> str:
    is_closed = rule.exclusive_minimum is None and rule.exclusive_maximum is None
    if is_closed and rule.minimum is not None and rule.maximum is not None:
        return f"from {scalar_text(rule.minimum)} to {scalar_text(rule.maximum)}"
    sentence = (
        ("at least", rule.minimum),
        ("more than", rule.exclusive_minimum),
        ("at most", rule.maximum),
        ("less than", rule.exclusive_maximum),
    )
    return " and ".join(f"{words} {scalar_text(n)}" for words, n in sentence if n is not None)


# --- the narrowed schema --------------------------------------------------------------------------

_Change: TypeAlias = Callable[[JsonObject], JsonObject | None]


def narrowed_schema(schema: JsonObject, rules: Iterable[Rule]) -> JsonObject:
    """The parameters schema as the rules narrow it; the same object when they state nothing.

    Args:
        schema: The contract, with or without descriptions.
        rules: What was learned. A rule that a schema cannot state, or whose parameter the
            contract does not name, changes nothing.

    Example:
        >>> schema = {"type": "object", "properties": {"periods": {"type": "integer"}}}
        >>> rules = [OneOf(parameter="periods", values=(36, 48, 60)),
        ...          Between(parameter="periods", maximum=48)]
        >>> narrowed_schema(schema, rules)["properties"]
        {'periods': {'type': 'integer', 'enum': [36, 48, 60], 'maximum': 48}}
        >>> narrowed_schema({}, [Takes(parameter="n", types=("integer",), required=True)])
        {'properties': {'n': {'type': 'integer'}}, 'required': ['n']}
    """
    for rule in sorted(rules, key=lambda rule: not isinstance(rule, Takes)):
        schema = _narrowed(schema, rule) or schema
    return schema


def _narrowed(schema: JsonObject, rule: Rule) -> JsonObject | None:
    """The narrowed schema; None when a schema cannot state the rule."""
    if isinstance(rule, CallBefore | Condition) or _is_shared_by_path(schema):
        return None
    if isinstance(rule, Takes):
        return _with_parameter(schema, rule)
    parts = parts_at(schema, rule.parameter)
    if not parts or (isinstance(rule, Form) and rule.pattern and why_unsafe(rule.pattern)):
        return None
    if isinstance(rule, Requires):
        required = schema.get("dependentRequired", {})
        if not isinstance(required, Mapping) or not isinstance(
            required.get(rule.parameter, []), list
        ):
            return None
        both = list(dict.fromkeys([*required.get(rule.parameter, []), *rule.others]))
        return {**schema, "dependentRequired": {**required, rule.parameter: both}}
    steps = path_steps(schema, rule.parameter)
    return _at(schema, steps, lambda part: _stated(rule, parts, schema, part))


def _with_parameter(schema: JsonObject, rule: Takes) -> JsonObject | None:
    """The schema with a discovered parameter; None when it allows no other names."""
    if "$ref" in schema or not may_take(schema, rule.parameter):
        return None

    def typed(part: JsonObject) -> JsonObject:
        said = [type_schema(name) for name in rule.types]
        stated = said[0] if len(said) == 1 else {"anyOf": said} if said else {}
        return {**stated, **part} if not part.keys() & {"type", "anyOf", "enum"} else part

    changed = _at(schema, (rule.parameter,), typed)
    needed = schema.get("required", [])
    if changed is None or not rule.required or not isinstance(needed, list | tuple):
        return changed
    return {**changed, "required": list(dict.fromkeys([*needed, rule.parameter]))}


def may_take(schema: JsonObject, name: str) -> bool:
    """Whether a contract names a parameter, or leaves open that there are others."""
    own = schema.get("properties", {})
    is_closed = schema.get("additionalProperties") is False or "unevaluatedProperties" in schema
    return isinstance(own, Mapping) and (name in own or not is_closed)


def type_schema(name: str) -> dict[str, Any]:
    """The schema of a discovered type.

    Example:
        >>> type_schema("number[]")
        {'type': 'array', 'items': {'type': 'number'}}
    """
    if name.endswith("[]"):
        return {"type": "array", "items": type_schema(name[:-2])}
    return {"type": name}


def _is_shared_by_path(schema: JsonObject) -> bool:
    """Whether a change might show elsewhere, because a part is referred to by its place."""
    named = ("#/$defs/", "#/definitions/")
    return not all(one.startswith(named) for one in references(schema)) or any(
        "$dynamicRef" in part or "$recursiveRef" in part for part in schemas_in(schema)
    )


def _at(part: Any, steps: Steps, change: _Change) -> JsonObject | None:
    """A schema with a change at the end of the steps; None when it cannot be made safely."""
    part = {} if part is True else part
    if not isinstance(part, Mapping):
        return None
    if not steps:
        return change(part)
    name, rest = steps[0], steps[1:]
    if name is not None:
        return _in_property(part, name, lambda below: _at(below, rest, change))
    if "prefixItems" in part or "unevaluatedItems" in part:
        return None
    below = _at(part.get("items", {}), rest, change)
    return None if below is None else {**part, "items": below}


def _in_property(part: JsonObject, name: str, change: _Change) -> JsonObject | None:
    own = part.get("properties", {})
    below = change(own.get(name, {})) if isinstance(own, Mapping) else None
    if below is None or (name not in own and "unevaluatedProperties" in part):
        return None
    others = part.get("additionalProperties", True)
    if name not in own and others is not True and others != {}:  # it speaks of the names beside it
        return _both(part, {"properties": {name: below}})
    return {**part, "properties": {**own, name: below}}


def _both(part: JsonObject, more: JsonObject) -> JsonObject:
    schemas = part.get("allOf", ())
    return {**part, "allOf": [*(schemas if isinstance(schemas, list | tuple) else ()), more]}


def keywords(rule: OneOf | Between | Form) -> dict[str, Any]:
    """A rule as JSON Schema keywords; parts that no keyword can express are left out.

    Example:
        >>> keywords(Between(parameter="title", measure="length", maximum=80))
        {'maxLength': 80}
    """
    match rule:
        case OneOf():
            return {"enum": [*rule.values]}
        case Between(measure="value"):
            step = rule.multiple_of
            stated = {
                "minimum": rule.minimum,
                "maximum": rule.maximum,
                "exclusiveMinimum": rule.exclusive_minimum,
                "exclusiveMaximum": rule.exclusive_maximum,
                "multipleOf": step if step is not None and step > 0 else None,
            }
        case Between():
            what = "Length" if rule.measure == "length" else "Items"
            stated = {f"min{what}": rule.minimum, f"max{what}": rule.maximum}
        case Form():
            is_usable = bool(rule.pattern) and not why_unsafe(rule.pattern)
            texts = {"pattern": anchored(rule.pattern) if is_usable else "", "format": rule.format}
            return {keyword: text for keyword, text in texts.items() if text}
    return {keyword: n for keyword, n in stated.items() if n is not None and is_finite(n)}


_TIGHTER: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), min),
}
"""Which of two bounds allows less."""


def _stated(
    rule: OneOf | Between | Form, found: Sequence[Any], root: JsonObject, part: JsonObject
) -> JsonObject | None:
    """The schema of a parameter with what a rule says of it; None when no value would be left."""
    if isinstance(rule, OneOf):
        return _with_values(rule, found, root, part)
    for keyword, stated in keywords(rule).items():
        value, tighter = part.get(keyword), _TIGHTER.get(keyword)
        if tighter and isinstance(value, int | float) and not isinstance(value, bool):
            part = {**part, keyword: tighter(value, stated)}
        elif keyword not in part:
            part = {**part, keyword: stated}
        elif not same_json(value, stated):
            part = _both(part, {keyword: stated})
    return part


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
    if isinstance(enum := part.get("enum"), list):
        members = set(map(json_key, enum))
        kept = [value for value in kept if json_key(value) in members]
    return {**part, "enum": kept} if kept else None
