"""Learned rules: what evolution found out about a tool, as data rather than words alone.

A rule says something that the contract (L1) leaves open and that calls kept breaking: which
values a parameter takes, its range, its form. It belongs to L3 of the definition. Everything that
a reader or a machine sees of it is derived from it: the sentence, the narrowed schema and with
that the grammar of local models, and the executor's refusal. So all of it is gone when the rule is.

A rule can only narrow. The contract itself never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

JsonScalar: TypeAlias = str | int | float | bool | None

NamedFormat = Literal["date", "time", "date-time", "email", "uri", "uuid"]
"""Forms with a checker of their own, in the words of JSON Schema."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOf:
    """A parameter takes one of these values.

    Attributes:
        parameter: Dotted path as in ``Description.parameters`` (``address.city``, ``items[].sku``).
        values: The values, in the order in which they are told.
    """

    parameter: str
    values: tuple[JsonScalar, ...]
    kind: Literal["one_of"] = "one_of"


@dataclass(frozen=True, kw_only=True, slots=True)
class Between:
    """A number lies in a range, or is a multiple of a step.

    Attributes:
        parameter: Dotted path.
        minimum: Smallest value, itself allowed; None for no bound.
        maximum: Largest value, itself allowed; None for no bound.
        multiple_of: The value is a multiple of this; None for any.
        unit: What the number counts, in words (``months``); empty when not known.
    """

    parameter: str
    minimum: float | None = None
    maximum: float | None = None
    multiple_of: float | None = None
    unit: str = ""
    kind: Literal["between"] = "between"


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A text has a form.

    Attributes:
        parameter: Dotted path.
        pattern: A regular expression that the whole text matches; empty when ``format`` says it.
        format: A form that has a name; empty when ``pattern`` says it.
        words: The form in words (``two capital letters``); needed with a pattern.
        example: A value that has the form.
    """

    parameter: str
    pattern: str = ""
    format: NamedFormat | Literal[""] = ""
    words: str = ""
    example: str = ""
    kind: Literal["form"] = "form"


@dataclass(frozen=True, kw_only=True, slots=True)
class Requires:
    """When one parameter is given, others must be too.

    Attributes:
        parameter: Name of a top-level parameter.
        others: Names of the top-level parameters that go with it.
    """

    parameter: str
    others: tuple[str, ...]
    kind: Literal["requires"] = "requires"


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """Parameters fit each other.

    Attributes:
        expression: Over the parameters, in the composite language (``start <= end``).
        words: The condition in words.
    """

    expression: str
    words: str
    kind: Literal["condition"] = "condition"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallBefore:
    """Another tool is called first.

    Attributes:
        tool: Name of the tool whose successful call must come earlier in the conversation.
        parameter: The parameter whose value comes from that call; empty for order only.
    """

    tool: str
    parameter: str = ""
    kind: Literal["call_before"] = "call_before"


Rule: TypeAlias = OneOf | Between | Form | Requires | Condition | CallBefore

_KINDS: Mapping[str, Callable[..., Rule]] = {
    "one_of": OneOf,
    "between": Between,
    "form": Form,
    "requires": Requires,
    "condition": Condition,
    "call_before": CallBefore,
}


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """The rule as a JSON object; empty parts are left out.

    Example:
        >>> rule_to_json(OneOf(parameter="periods", values=(36, 48, 60)))
        {'kind': 'one_of', 'parameter': 'periods', 'values': [36, 48, 60]}
    """
    names = [name for name in rule.__dataclass_fields__ if name != "kind"]
    values = {name: getattr(rule, name) for name in names}
    kept = {name: value for name, value in values.items() if value not in (None, "")}
    listed = {n: list(v) if isinstance(v, tuple) else v for n, v in kept.items()}
    return {"kind": rule.kind, **listed}


def rule_from_json(record: Mapping[str, Any]) -> Rule:
    """The inverse of ``rule_to_json``.

    Raises:
        TypeError: The record is no rule: its kind or one of its parts is unknown, or one is absent.
    """
    given = dict(record)
    kind = given.pop("kind", None)
    made = _KINDS.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise TypeError(f"there is no rule of kind {kind!r}; known are {', '.join(_KINDS)}")
    return made(**{n: tuple(v) if isinstance(v, list) else v for n, v in given.items()})
