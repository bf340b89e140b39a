"""Whether rules and a contract leave any value at all, as far as that can be told.

Listed values are tried one by one, and ranges are worked out. Two patterns are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from agentkit.messages import JsonObject
from agentkit.tools.fit import fits, is_of_type
from agentkit.tools.rules.holding import holds
from agentkit.tools.rules.records import Between, Form, Measure, OneOf
from agentkit.tools.schema import resolve_local

JSON_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

_MAX_DEPTH = 12
_MAX_PARTS = 2_000


def possible_types(part: Any, root: JsonObject) -> frozenset[str]:
    """The JSON types that a value under a schema may have; ``number`` includes ``integer``.

    Example:
        >>> sorted(possible_types({"anyOf": [{"type": "number"}, {"enum": ["auto"]}]}, {}))
        ['integer', 'number', 'string']
    """
    return _Types(root).of(part, 0)


class _Types:
    """Works out types within one document; a part that is too deep or too wide may be anything."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MAX_PARTS

    def of(self, part: Any, depth: int) -> frozenset[str]:
        """The types that a value under ``part`` may have."""
        self._left -= 1
        if part is False:
            return frozenset()
        if not isinstance(part, Mapping) or depth > _MAX_DEPTH or self._left < 0:
            return JSON_TYPES
        types = _declared(part)
        for keyword in ("anyOf", "oneOf"):
            branches = part.get(keyword)
            if isinstance(branches, list) and branches:
                types &= frozenset().union(*(self.of(branch, depth + 1) for branch in branches))
        for beside in _holding_together(part, self._root):
            types &= self.of(beside, depth + 1)
        return types


def _declared(part: JsonObject) -> frozenset[str]:
    types = JSON_TYPES
    declared = part.get("type")
    names = [declared] if isinstance(declared, str) else declared
    if isinstance(names, list) and names:
        types = frozenset(kind for kind in JSON_TYPES if kind in names)
        types |= {"integer"} if "number" in types else frozenset()
    members = _own_values(part)
    if members is not None:
        types &= {kind for kind in types for member in members if is_of_type(member, kind)}
    return types


def _holding_together(part: JsonObject, root: JsonObject) -> Iterator[Any]:
    """The schemas that hold for the same value as well."""
    if isinstance(part.get("$ref"), str):
        yield resolve_local(root, part["$ref"])
    if isinstance(part.get("allOf"), list):
        yield from part["allOf"]


def _own_values(part: JsonObject) -> list[Any] | None:
    if "const" in part:
        return [part["const"]]
    members = part.get("enum")
    return members if isinstance(members, list) else None


def contradiction(
    rules: Sequence[OneOf | Between | Form], parts: Sequence[Any], root: JsonObject
) -> str:
    """Why no value is left for a parameter; empty when there is one, or it can not be told.

    Args:
        rules: All rules about the parameter.
        parts: What the contract says of it, each an alternative.
        root: The contract, which references point into.
    """
    for values in _lists(rules, parts, root):
        if not any(_is_left(value, rules, parts, root) for value in values):
            return "no listed value is allowed by all that must hold"
    for measure in dict.fromkeys(rule.measure for rule in rules if isinstance(rule, Between)):
        if not any(_has_number(_interval(rules, part, root, measure)) for part in parts):
            number = {"value": "number", "length": "length of a text", "items": "number of items"}
            return f"no {number[measure]} lies within all the bounds and steps"
    return ""


def _lists(
    rules: Sequence[OneOf | Between | Form], parts: Sequence[Any], root: JsonObject
) -> Iterator[Sequence[Any]]:
    yield from (rule.values for rule in rules if isinstance(rule, OneOf))
    listed = [next(_listed(part, root), None) for part in parts]
    if listed and None not in listed:
        yield [value for values in listed for value in values or ()]


def _listed(part: Any, root: JsonObject) -> Iterator[Sequence[Any]]:
    yield from (values for one in _together(part, root) if (values := _own_values(one)) is not None)


def _together(part: Any, root: JsonObject) -> Iterator[JsonObject]:
    """A schema and all that hold beside it, whatever they are nested in."""
    waiting, left = [part], 100
    while waiting and left:
        left -= 1
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield one
            waiting.extend(_holding_together(one, root))


def _is_left(
    value: Any,
    rules: Sequence[OneOf | Between | Form],
    parts: Sequence[Any],
    root: JsonObject,
) -> bool:
    is_allowed = any(fits(value, part, root=root) is not False for part in parts)
    return is_allowed and all(holds(rule, value) for rule in rules)


class _Interval(NamedTuple):
    """Numbers from one bound to another in steps; None where there is no bound or no step."""

    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None
    opens: bool = False
    closes: bool = False

    def above(self, limit: Fraction, *, is_outside: bool = False) -> _Interval:
        if self.low is not None and (limit, is_outside) <= (self.low, self.opens):
            return self
        return self._replace(low=limit, opens=is_outside)

    def below(self, limit: Fraction, *, is_outside: bool = False) -> _Interval:
        if self.high is not None and (limit, not is_outside) >= (self.high, not self.closes):
            return self
        return self._replace(high=limit, closes=is_outside)

    def every(self, step: Fraction) -> _Interval:
        both = step if self.step is None else _common_multiple(step, self.step)
        return self._replace(step=both)


def _common_multiple(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(
        math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator)
    )


_OF_COUNTS = {"length": ("minLength", "maxLength"), "items": ("minItems", "maxItems")}


def _interval(
    rules: Sequence[OneOf | Between | Form], part: Any, root: JsonObject, measure: Measure
) -> _Interval:
    interval = _Interval()
    if measure != "value" or "number" not in possible_types(part, root):
        interval = interval.every(Fraction(1))
    low, high = _OF_COUNTS.get(measure, ("minimum", "maximum"))
    for one in _together(part, root):
        is_value = measure == "value"
        interval = _within(
            interval,
            minimum=one.get(low),
            maximum=one.get(high),
            step=one.get("multipleOf") if is_value else None,
            over=one.get("exclusiveMinimum") if is_value else None,
            under=one.get("exclusiveMaximum") if is_value else None,
        )
    for rule in rules:
        if isinstance(rule, Between) and rule.measure == measure:
            interval = _within(
                interval,
                minimum=rule.minimum,
                maximum=rule.maximum,
                step=rule.multiple_of,
                over=rule.exclusive_minimum,
                under=rule.exclusive_maximum,
            )
    return interval


def _within(
    interval: _Interval, *, minimum: Any, maximum: Any, step: Any, over: Any, under: Any
) -> _Interval:
    low, high, every = map(_exact, (minimum, maximum, step))
    above, below = map(_exact, (over, under))
    if above is not None:
        interval = interval.above(above, is_outside=True)
    if below is not None:
        interval = interval.below(below, is_outside=True)
    if low is not None:
        interval = interval.above(low)
    if high is not None:
        interval = interval.below(high)
    return interval.every(every) if every is not None and every > 0 else interval


def _exact(number: Any) -> Fraction | None:
    """A number by its digits as written; None for what is no number."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    if isinstance(number, int):
        return Fraction(number)
    return Fraction(repr(number)) if math.isfinite(number) else None


def _has_number(interval: _Interval) -> bool:
    low, high, step = interval.low, interval.high, interval.step
    if low is None or high is None:
        return True
    if step is not None:
        first = math.ceil(low / step) * step
        low, opens = first, interval.opens and first == low
        low = low + step if opens else low
        return low < high or (low == high and not interval.closes)
    return low < high or (low == high and not interval.opens and not interval.closes)
