"""Whether rules and a contract leave any value at all, as far as that can be told.

Listed values are tried one by one, and ranges are worked out. Two patterns are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.canonical import exact, is_finite
from agentkit.tools.rules.checking import holds
from agentkit.tools.rules.records import Between, Form, Measure, OneOf
from agentkit.tools.schema import for_same_value, resolve_local
from agentkit.tools.schema_validator import JSON_TYPES, fits, is_of_type

_MAX_DEPTH = 12
_MAX_PARTS = 2_000
_MEASURED = {
    "value": ("number", "minimum", "maximum"),
    "length": ("length of a text", "minLength", "maxLength"),
    "items": ("number of items", "minItems", "maxItems"),
}


def possible_types(part: Any, root: JsonObject) -> frozenset[str]:
    """The JSON types that a value under a schema may have; ``number`` includes ``integer``.

    Args:
        part: The schema, one part of a document. What is too deep or too wide may be anything.
        root: The document.

    Example:
        >>> sorted(possible_types({"anyOf": [{"type": "number"}, {"enum": ["auto"]}]}, {}))
        ['integer', 'number', 'string']
    """
    left = _MAX_PARTS

    def types_of(one: Any, depth: int) -> frozenset[str]:
        nonlocal left
        left -= 1
        if one is False:
            return frozenset()
        if not isinstance(one, Mapping) or depth > _MAX_DEPTH or left < 0:
            return frozenset(JSON_TYPES)
        types = _declared(one)
        for keyword in ("anyOf", "oneOf"):
            branches = one.get(keyword)
            if isinstance(branches, list) and branches:
                types &= frozenset().union(*(types_of(branch, depth + 1) for branch in branches))
        beside = one.get("allOf")
        for other in beside if isinstance(beside, list) else ():
            types &= types_of(other, depth + 1)
        if isinstance(one.get("$ref"), str):
            types &= types_of(resolve_local(root, one["$ref"]), depth + 1)
        return types

    return types_of(part, 0)


def _declared(part: JsonObject) -> frozenset[str]:
    types = frozenset(JSON_TYPES)
    declared = part.get("type")
    names = [declared] if isinstance(declared, str) else declared
    if isinstance(names, list) and names:
        types = frozenset(kind for kind in JSON_TYPES if kind in names)
        types |= {"integer"} if "number" in types else frozenset()
    members = _own_values(part)
    if members is not None:
        types &= {kind for kind in types for member in members if is_of_type(member, kind)}
    return types


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
    together = [[*for_same_value(part, root, "allOf")] for part in parts]
    lists: list[Sequence[Any]] = [rule.values for rule in rules if isinstance(rule, OneOf)]
    listed = [
        next((found for one in schemas if (found := _own_values(one)) is not None), None)
        for schemas in together
    ]
    if listed and None not in listed:
        lists.append([value for values in listed for value in values or ()])
    for values in lists:
        if not any(
            any(fits(value, part, root=root) is not False for part in parts)
            and all(holds(rule, value) for rule in rules)
            for value in values
        ):
            return "no listed value is allowed by all that must hold"
    ranges = [rule for rule in rules if isinstance(rule, Between)]
    for measure in dict.fromkeys(rule.measure for rule in ranges):
        own = [rule for rule in ranges if rule.measure == measure]
        whole = [measure != "value" or "number" not in possible_types(part, root) for part in parts]
        if not any(
            _has_number(own, schemas, measure, is_whole=is_whole)
            for schemas, is_whole in zip(together, whole, strict=True)
        ):
            return f"no {_MEASURED[measure][0]} lies within all the bounds and steps"
    return ""


def _has_number(
    rules: Sequence[Between], schemas: Sequence[JsonObject], measure: Measure, *, is_whole: bool
) -> bool:
    """Whether a number lies within the bounds and steps of rules and schemas."""
    _, minimum, maximum = _MEASURED[measure]
    lows, highs = [], []  # bounds, each with whether it is itself left out
    steps = [Fraction(1)] if is_whole else []
    for one in schemas:
        lows.append((one.get(minimum), False))
        highs.append((one.get(maximum), False))
        if measure == "value":
            lows.append((one.get("exclusiveMinimum"), True))
            highs.append((one.get("exclusiveMaximum"), True))
            steps.extend(_fractions([one.get("multipleOf")]))
    for rule in rules:
        lows += [(rule.minimum, False), (rule.exclusive_minimum, True)]
        highs += [(rule.maximum, False), (rule.exclusive_maximum, True)]
        steps.extend(_fractions([rule.multiple_of]))
    above = [(bound, is_open) for limit, is_open in lows for bound in _fractions([limit])]
    below = [(bound, not is_open) for limit, is_open in highs for bound in _fractions([limit])]
    if not above or not below:
        return True
    (low, low_is_open), (high, high_is_closed) = max(above), min(below)
    if step := reduce(_common_multiple, (step for step in steps if step > 0), Fraction(0)):
        first = math.ceil(low / step) * step
        low, low_is_open = (first + step if low_is_open and first == low else first), False
    return low < high or (low == high and high_is_closed and not low_is_open)


def _common_multiple(one: Fraction, other: Fraction) -> Fraction:
    if not one:
        return other
    return Fraction(
        math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator)
    )


def _fractions(numbers: Iterable[Any]) -> Iterator[Fraction]:
    """Numbers by their digits as written; what is no number to compare with is left out."""
    for number in numbers:
        if isinstance(number, int | float) and not isinstance(number, bool) and is_finite(number):
            yield exact(number)
