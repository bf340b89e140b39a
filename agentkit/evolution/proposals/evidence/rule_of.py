"""From what a tool states to a rule about one of its parameters."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from math import isfinite
from typing import Any, get_args

from agentkit.evolution.proposals.stated import (
    StatedForm,
    StatedNeed,
    StatedOrder,
    StatedRange,
    StatedSet,
    Statement,
    form_of_pattern,
    stated_in_description,
)
from agentkit.messages import JsonObject, ToolFailure
from agentkit.tools.canonical import canonical_json
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.rules import (
    Between,
    Condition,
    Form,
    NamedFormat,
    OneOf,
    Requires,
    Rule,
    rule_to_json,
)
from agentkit.tools.rules.contradictions import possible_types
from agentkit.tools.schema import places, values_at

_NAME = re.compile(r"[A-Za-z]\w{0,60}", re.ASCII)
_NAMED_FORMATS: Mapping[str, NamedFormat] = {name: name for name in get_args(NamedFormat)}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_MOST_PATHS = 100
_MOST_STEPS = 2_000
_LARGEST = 1e300
_PYTHON = {"True": True, "False": False, "true": True, "false": False}


def rule_key(rule: Rule) -> str:
    """What a rule says, whatever the order of its values and the way its numbers are written.

    Example:
        >>> one = OneOf(parameter="periods", values=(36, 48))
        >>> rule_key(one) == rule_key(OneOf(parameter="periods", values=(48.0, 36)))
        True
    """
    said: dict[str, Any] = rule_to_json(rule)
    for name, value in said.items():
        said[name] = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(rule, OneOf):
        values = (int(v) if isinstance(v, float) and v.is_integer() else v for v in rule.values)
        said["values"] = sorted(canonical_json(value).decode() for value in values)
    said.pop("example", None)
    return canonical_json(said).decode()


def described_rules(definition: ToolDefinition, name: str) -> Iterator[Rule]:
    """The rules that the text of a parameter states."""
    part = definition.signature.properties.get(name)
    texts = [definition.description.parameters.get(name, "")]
    texts += [part.get("description", "")] if isinstance(part, Mapping) else []
    for text in filter(lambda text: isinstance(text, str), dict.fromkeys(texts)):
        for statement in stated_in_description(text):
            for path in value_paths(name, definition):
                rule = rule_of(statement, path, definition)
                if rule is not None:
                    yield rule


def structured(failure: ToolFailure) -> tuple[Statement, ...]:
    """What a refusal states as data: the keyword of the schema that was broken.

    Example:
        >>> structured(ToolFailure(kind="invalid_arguments", rule="", path="unit", cause="enum",
        ...                        schema_excerpt={"type": "string", "enum": ["C", "F"]}))
        (StatedSet(values=('C', 'F'), is_closed=True, start=0),)
    """
    schema, keyword = failure.schema_excerpt, failure.cause
    if failure.kind != "invalid_arguments" or schema is None or not keyword:
        return ()
    limit = schema.get(keyword)
    if keyword == "enum" and isinstance(limit, list | tuple) and all(map(_is_scalar, limit)):
        return (StatedSet(values=tuple(limit)),)
    if keyword in _BOUNDS and _is_number(limit):
        return (_range_of(schema),)
    if keyword == "pattern" and isinstance(limit, str):
        form = form_of_pattern(limit)
        return () if form is None else (form,)
    if keyword == "format" and isinstance(limit, str) and limit in _NAMED_FORMATS:
        return (StatedForm(format=_NAMED_FORMATS[limit], example=FORMAT_EXAMPLES[limit]),)
    return ()


def value_paths(name: str, definition: ToolDefinition) -> Iterator[str]:
    """The path of a parameter, and that of its items where it is a list.

    Example:
        >>> tags = ToolDefinition.from_schema("tag", "", {
        ...     "properties": {"tags": {"type": "array", "items": {"type": "string"}}}})
        >>> list(value_paths("tags", tags)), list(value_paths("colour", tags))
        (['tags[]'], [])
    """
    for path in (name, f"{name}[]"):
        ways = places(definition.signature.parameters, path).values()
        parts = [part for found in ways for part in found]
        if any(_types(part, definition) - {"array", "object"} for part in parts):
            yield path


def given_paths(arguments: JsonObject) -> tuple[str, ...]:
    """The paths of the values that arguments give, those of items once.

    Example:
        >>> given_paths({"city": "Oslo", "days": [{"n": 1}, {"n": 2}]})
        ('city', 'days[].n')
    """
    found: dict[str, None] = {}
    waiting: deque[tuple[str, Any]] = deque([("", arguments)])
    for _ in range(_MOST_STEPS):
        if not waiting or len(found) >= _MOST_PATHS:
            break
        path, value = waiting.popleft()
        if isinstance(value, Mapping):
            inside = islice(value.items(), _MOST_PATHS)
            waiting += [(f"{path}.{name}" if path else str(name), part) for name, part in inside]
        elif isinstance(value, list | tuple):
            waiting += [(f"{path}[]", item) for item in value[:_MOST_PATHS]]
        else:
            found[path] = None
    return tuple(found)


def values_of(path: str, arguments: JsonObject, definition: ToolDefinition) -> list[Any]:
    """The values that arguments give for a parameter."""
    ways = places(definition.signature.parameters, path)
    return [value for steps in ways for _, value in values_at(arguments, steps)]


def rule_of(statement: Statement, path: str, definition: ToolDefinition) -> Rule | None:
    """The rule that a statement makes for a parameter; None when it makes none.

    A bound that is itself not allowed ("greater than 0") stays one. For a whole number the next
    one is the bound, which says the same in the words that models follow best.

    Example:
        >>> wait = ToolDefinition.from_schema("wait", "", {
        ...     "properties": {"days": {"type": "integer"}}})
        >>> rule_of(StatedRange(minimum=0, above=True), "days", wait).minimum
        1
        >>> cost = ToolDefinition.from_schema("cost", "", {
        ...     "properties": {"rate": {"type": "number"}}})
        >>> rule_of(StatedRange(minimum=0, above=True), "rate", cost).exclusive_minimum
        0
        >>> rule_of(StatedSet(values=("7", "14")), "days", wait)
        OneOf(parameter='days', values=(7, 14), kind='one_of')
    """
    match statement:
        case StatedSet():
            return _one_of(statement, path, definition)
        case StatedRange():
            return _between(statement, path, _is_whole(path, definition))
        case StatedForm(format="", pattern=""):
            return None
        case StatedForm():
            pattern = "" if statement.format else statement.pattern
            return Form(
                parameter=path,
                pattern=pattern,
                format=statement.format,
                words=statement.words if pattern else "",
                example=statement.example,
            )
        case StatedOrder():
            return _condition(statement)
        case StatedNeed():
            return Requires(parameter=statement.parameter, others=(statement.other,))


def _one_of(stated: StatedSet, path: str, definition: ToolDefinition) -> OneOf | None:
    schema = definition.signature.parameters
    parts = [part for found in places(schema, path).values() for part in found]
    if not stated.is_closed or not parts:
        return None
    values = tuple(_typed(value, parts[0], definition) for value in stated.values)
    return OneOf(parameter=path, values=values) if all(map(_is_scalar, values)) else None


def _typed(value: Any, part: Any, definition: ToolDefinition) -> Any:
    """A value as the parameter takes it; what was read from a text may be a number."""
    if not isinstance(value, str):
        return value
    types = _types(part, definition)
    if "boolean" in types and "string" not in types:
        return _PYTHON.get(value, value)
    return coerce(value, part)


def _between(stated: StatedRange, path: str, is_whole: bool) -> Between | None:  # noqa: FBT001 - of the type
    low, high, step = stated.minimum, stated.maximum, stated.multiple_of
    if is_whole:
        low = None if low is None else _next_whole(low, above=stated.above)
        high = None if high is None else -_next_whole(-high, above=stated.below)
    low, high, step = (None if n is None else _shortest(n) for n in (low, high, step))
    if low is None and high is None and step is None and not stated.unit:
        return None
    is_above, is_below = (one and not is_whole for one in (stated.above, stated.below))
    return Between(
        parameter=path,
        minimum=None if is_above else low,
        maximum=None if is_below else high,
        exclusive_minimum=low if is_above else None,
        exclusive_maximum=high if is_below else None,
        multiple_of=step,
        unit=stated.unit,
    )


def _next_whole(bound: float, *, above: bool) -> float:
    whole = float(-(-bound // 1))
    return whole + 1 if above and whole == bound else whole


def _shortest(number: float) -> float:
    return int(number) if isfinite(number) and number == int(number) else number


def _condition(stated: StatedOrder) -> Condition | None:
    if not (_NAME.fullmatch(stated.left) and _NAME.fullmatch(stated.right)):
        return None
    word = "less than" if stated.sign == "<" else "at most"
    words = f"{stated.left} must be {word} {stated.right}"
    return Condition(expression=f"{stated.left} {stated.sign} {stated.right}", words=words)


def _range_of(schema: JsonObject) -> StatedRange:
    def bound(keyword: str) -> Any:
        return schema.get(keyword) if _is_number(schema.get(keyword)) else None

    low, above = bound("minimum"), bound("exclusiveMinimum")
    high, below = bound("maximum"), bound("exclusiveMaximum")
    is_above = above is not None and (low is None or above >= low)
    is_below = below is not None and (high is None or below <= high)
    return StatedRange(
        minimum=above if is_above else low,
        maximum=below if is_below else high,
        above=is_above,
        below=is_below,
        multiple_of=bound("multipleOf"),
    )


def _types(part: Any, definition: ToolDefinition) -> frozenset[str]:
    return possible_types(part, definition.signature.parameters)


def _is_whole(path: str, definition: ToolDefinition) -> bool:
    ways: Mapping[Any, list[Any]] = places(definition.signature.parameters, path)
    types = [_types(part, definition) for parts in ways.values() for part in parts]
    return bool(types) and all("number" not in found for found in types)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
