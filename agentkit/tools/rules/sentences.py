"""A learned rule in plain English: what a hosted model reads of it."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.rules.records import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
)

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
        >>> from agentkit.tools.rules import Between, CallBefore, OneOf
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
    """
    match rule:
        case OneOf() | Between() | Form():
            return f"{rule.parameter} {demand(rule)}."
        case Requires():
            return f"When {rule.parameter} is given, {_listed(rule.others)} must be given too."
        case Condition():
            return _ended(rule.words)
        case CallBefore():
            source = f"; {rule.parameter} comes from its result" if rule.parameter else ""
            return f"Call {rule.tool} first{source}."


def demand(rule: OneOf | Between | Form) -> str:
    """What the value of a parameter must be, as the end of a sentence without its full stop."""
    match rule:
        case OneOf():
            return f"must be {_choice(rule)}"
        case Between():
            return _range(rule)
        case Form():
            return f"must be {_form(rule)}"


def _choice(rule: OneOf) -> str:
    shown = ", ".join(map(scalar_text, rule.values))
    return shown if len(rule.values) == 1 else f"one of {shown}"


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
    said = (
        ("at least", rule.minimum),
        ("more than", rule.exclusive_minimum),
        ("at most", rule.maximum),
        ("less than", rule.exclusive_maximum),
    )
    return " and ".join(f"{words} {scalar_text(n)}" for words, n in said if n is not None)


def _form(rule: Form) -> str:
    said = rule.words or _FORMAT_WORDS.get(rule.format, rule.format) or f"like {rule.pattern}"
    example = rule.example or FORMAT_EXAMPLES.get(rule.format, "")
    return f"{said}, such as {example}" if example else said


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _ended(words: str) -> str:
    said = " ".join(words.split())
    is_ended = not said or unicodedata.category(said[-1]) == "Po"  # in any script
    return said if is_ended else f"{said}."
