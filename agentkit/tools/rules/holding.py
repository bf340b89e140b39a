"""Whether one value is as a learned rule says, and which values come near it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentkit.tools.canonical import same_json
from agentkit.tools.error_messages import close_to
from agentkit.tools.formats import FORMAT_EXAMPLES, FORMATS
from agentkit.tools.patterns import matches_whole, why_unsafe
from agentkit.tools.rules.malformed import is_finite
from agentkit.tools.rules.records import Between, Form, OneOf
from agentkit.tools.rules.sentences import scalar_text

_MOST_NEAREST = 3


def holds(rule: OneOf | Between | Form, value: Any) -> bool:
    """Whether a value is as a rule says.

    As in JSON Schema, a range speaks of numbers (or of the length of texts, or of lists) and a form
    of texts; values of other types are left to the contract. A pattern that is not safe is not
    applied.

    Example:
        >>> holds(Between(parameter="x", multiple_of=0.01), 19.99)
        True
        >>> holds(Between(parameter="x", measure="length", maximum=3), "four")
        False
    """
    match rule:
        case OneOf():
            return any(same_json(value, allowed) for allowed in rule.values)
        case Between():
            measured = _measured(rule, value)
            return measured is None or _in(rule, measured)
        case Form():
            return not isinstance(value, str) or _has_form(rule, value)


def _measured(rule: Between, value: Any) -> float | None:
    """What the bounds are about; None for a value that they say nothing of."""
    if rule.measure == "length":
        return len(value) if isinstance(value, str) else None
    if rule.measure == "items":
        return len(value) if isinstance(value, list | tuple) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _in(rule: Between, value: float) -> bool:
    low = rule.minimum is None or value >= rule.minimum
    high = rule.maximum is None or value <= rule.maximum
    above = rule.exclusive_minimum is None or value > rule.exclusive_minimum
    below = rule.exclusive_maximum is None or value < rule.exclusive_maximum
    return (
        low
        and high
        and above
        and below
        and (rule.multiple_of is None or _is_multiple(value, rule.multiple_of))
    )


def _is_multiple(value: float, step: float) -> bool:
    """By the digits as written: 19.99 is a multiple of 0.01, though not as binary fractions."""
    if not (is_finite(step) and step > 0):
        return True
    if isinstance(step, int) and value % 1 == 0:
        return int(value) % step == 0
    return is_finite(value) and _exact(value) % _exact(step) == 0


def _exact(number: float) -> Any:
    from fractions import Fraction

    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _has_form(rule: Form, text: str) -> bool:
    named = FORMATS.get(rule.format)
    if named is not None and not named(text):
        return False
    return not rule.pattern or bool(why_unsafe(rule.pattern)) or matches_whole(rule.pattern, text)


def nearest_allowed(rule: OneOf | Between | Form, value: Any) -> tuple[str, ...]:
    """Allowed values that come near one that is not, as they are written in a call, best first.

    Example:
        >>> nearest_allowed(OneOf(parameter="periods", values=(36, 48, 60)), 40)
        ('36', '48', '60')
        >>> nearest_allowed(Between(parameter="n", minimum=1, maximum=9), 12)
        ('9',)
        >>> nearest_allowed(Between(parameter="n", exclusive_minimum=0), -2.5)
        ('1',)
    """
    match rule:
        case OneOf():
            return _nearest_members(rule, value)
        case Between():
            near = _nearest_numbers(rule, value) if rule.measure == "value" else ()
            return tuple(map(scalar_text, near))
        case Form():
            example = rule.example or FORMAT_EXAMPLES.get(rule.format, "")
            return (example,) if example else ()


def _nearest_members(rule: OneOf, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return close_to(value, [member for member in rule.values if isinstance(member, str)])
    if not _is_number(value):
        return ()
    numbers = [member for member in rule.values if _is_number(member)]
    numbers.sort(key=lambda member: abs(member - value))
    return tuple(map(scalar_text, numbers[:_MOST_NEAREST]))


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and is_finite(value)


def _nearest_numbers(rule: Between, value: Any) -> list[Any]:
    """The bound that was overstepped, or the multiples on both sides.

    Next to a bound that is itself not allowed no number is the nearest; the next whole one serves.
    """
    if not all(map(_is_number, (value, *rule.lows, *rule.highs))):
        return []
    inside = min((max((value, *rule.lows)), *rule.highs))
    step, is_open = rule.multiple_of, not _in(replace(rule, multiple_of=None), inside)
    if step is not None and is_finite(step) and step > 0:
        return _multiples(rule, inside, step)
    if not is_open:
        return [inside]
    whole = math.floor(inside)
    return [n for n in (whole - 1, whole, whole + 1) if _in(rule, n)][-1:]


def _multiples(rule: Between, inside: float, step: float) -> list[Any]:
    """The allowed multiples on both sides; below a bound that is not allowed, the one before it."""
    below = _exact(inside) // _exact(step) * _exact(step)
    before, *beside = [_plain(below + times * _exact(step)) for times in (-1, 0, 1)]

    def allowed(numbers: Sequence[Any]) -> list[Any]:
        return [number for number in numbers if number is not None and _in(rule, number)]

    return allowed(beside) or allowed([before])


def _plain(number: Any) -> Any:
    """A fraction as the shortest number that is equal to it; None when there is none."""
    if number.denominator == 1:
        return int(number)
    return float(number) if abs(number) <= sys.float_info.max else None
