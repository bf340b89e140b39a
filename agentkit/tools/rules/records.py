"""The kinds of learned rules as records, and as JSON.

Records are not checked when they are made. What a model or a file gave may hold anything, so
``why_malformed`` is asked before a rule is asked what it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.error_messages import plain_text, problems_of
from agentkit.tools.schema import JSON_TYPES
from agentkit.tools.schema_validator import UncheckableError, schema_errors

JsonScalar: TypeAlias = str | int | float | bool | None

NamedFormat = Literal["date", "time", "date-time", "email", "uri", "uuid"]
"""Forms with a checker of their own, in the words of JSON Schema."""


Measure = Literal["value", "length", "items"]
"""The measure of a range."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OneOf:
    """A parameter takes one of these values.

    Attributes:
        parameter: Dotted path as in ``Description.parameters`` (``address.city``, ``items[].sku``).
        values: The values, in the order in which they are shown.
    """

    parameter: str
    values: tuple[JsonScalar, ...]
    kind: Literal["one_of"] = "one_of"


@dataclass(frozen=True, kw_only=True, slots=True)
class Between:
    """A number lies in a range, or is a multiple of a step; or a text or list is that long.

    Attributes:
        parameter: Dotted path.
        minimum: Smallest value, itself allowed; None for no bound.
        maximum: Largest value, itself allowed; None for no bound.
        exclusive_minimum: The value is above this, which is itself not allowed; None for no bound.
        exclusive_maximum: The value is below this, which is itself not allowed; None for no bound.
        multiple_of: The value is a multiple of this; None for any.
        unit: What the number counts, in words (``months``); empty when not known.
        measure: What the bounds are about: the ``value`` itself, the ``length`` of a text in
            characters, or how many ``items`` a list has. Of the latter two there are whole bounds,
            themselves allowed, and neither steps nor units.
    """

    parameter: str
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    multiple_of: float | None = None
    unit: str = ""
    measure: Measure = "value"
    kind: Literal["between"] = "between"

    @property
    def lows(self) -> tuple[float, ...]:
        """The lower bounds that it has, whether they are themselves allowed or not."""
        return tuple(n for n in (self.minimum, self.exclusive_minimum) if n is not None)

    @property
    def highs(self) -> tuple[float, ...]:
        """The upper bounds that it has."""
        return tuple(n for n in (self.maximum, self.exclusive_maximum) if n is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A text has a form.

    Attributes:
        parameter: Dotted path.
        pattern: A regular expression that the whole text matches; empty when ``format`` says it.
        format: A form that has a name; empty when ``pattern`` says it.
        words: The form in words (``two capital letters``); say it better than a pattern.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Takes:
    """A discovered parameter: the contract leaves it, its types or that it is needed unsaid.

    Attributes:
        parameter: Name of a top-level parameter.
        types: JSON types of its values, lists with their items as in ``number[]``; empty when they
            are not known. A hint: a value of another type is left to the tool, which may take it.
        required: Whether a call must give it.
        calls: How many recorded calls show it.
    """

    parameter: str
    types: tuple[str, ...] = ()
    required: bool = False
    calls: int = 0
    kind: Literal["takes"] = "takes"

    @property
    def confidence(self) -> float:
        """How likely the next call shows it as well, by Laplace's rule of succession."""
        return (self.calls + 1) / (self.calls + 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierCall:
    """A call that succeeded earlier in the conversation.

    Attributes:
        name: The tool.
        text: Its result as text.
    """

    name: str
    text: str


Rule: TypeAlias = OneOf | Between | Form | Requires | Condition | CallBefore | Takes


_KINDS: Mapping[str, type[Rule]] = {
    "one_of": OneOf,
    "between": Between,
    "form": Form,
    "requires": Requires,
    "condition": Condition,
    "call_before": CallBefore,
    "takes": Takes,
}
# --- as JSON, and what a record may hold ----------------------------------------------------------

MAX_VALUES = 64
"""Most values that a rule may list: a model reads them all at every turn."""

_BOUNDS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum")
_TEXT: JsonObject = {"type": "string"}
_PARTS: Mapping[str, JsonObject] = {
    **{name: {"type": ["number", "null"]} for name in (*_BOUNDS, "multiple_of")},
    **{name: {"type": "array", "items": _TEXT} for name in ("others", "types")},
    "calls": {"type": "number"},
    "required": {"type": "boolean"},
    "values": {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}},
}
"""The schema of each part that is no text."""

_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_SENSIBLE: Mapping[str, JsonObject] = {
    "one_of": {
        "properties": {"values": {"minItems": 1, "maxItems": MAX_VALUES, "uniqueItems": True}}
    },
    "between": {
        "anyOf": [{"required": [name]} for name in (*_BOUNDS, "multiple_of", "unit")],
        "properties": {"multiple_of": {"exclusiveMinimum": 0}},
        "if": {"properties": {"measure": {"const": "value"}}},
        "else": {
            "properties": {
                "measure": {"enum": [*get_args(Measure)]},
                **dict.fromkeys(("minimum", "maximum"), _COUNT),
                **dict.fromkeys((*_BOUNDS[2:], "multiple_of", "unit"), False),
            },
        },
    },
    "form": {
        "oneOf": [{"required": ["pattern"]}, {"required": ["format"]}],
        "properties": {"format": {"enum": [*get_args(NamedFormat)]}},
    },
    "requires": {"properties": {"others": {"minItems": 1}}},
    "condition": {"properties": {"words": {"pattern": r"\S"}}},
    "takes": {
        "properties": {
            "parameter": {"pattern": r"^[A-Za-z_][\w.-]{0,63}$"},
            "types": {"items": {"pattern": rf"^({'|'.join(JSON_TYPES)})(\[\])*$"}},
        }
    },
}
"""What a rule of each kind needs beyond its form to say something."""


def why_malformed(rule: Any) -> str:
    """The problem of a rule's record; empty for one that says something.

    Example:
        >>> why_malformed(OneOf(parameter="days", values=(1, 2)))
        ''
        >>> why_malformed(Between(parameter="days", minimum="1"))
        "`minimum` must be a number or null, got the string '1'"
    """
    if type(rule) not in get_args(Rule):
        return f"{plain_text(rule)} is no rule"
    record = rule_to_json(rule)
    why = _misfit(record, rule.kind, _SENSIBLE.get(rule.kind))
    if not why and any(isinstance(getattr(rule, field.name), list) for field in fields(rule)):
        return "one of its parts is a list; write a tuple"
    return why


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """The rule as a JSON object; parts that equal their default are left out.

    Example:
        >>> rule_to_json(OneOf(parameter="periods", values=(36, 48, 60)))
        {'kind': 'one_of', 'parameter': 'periods', 'values': [36, 48, 60]}
    """
    record: dict[str, Any] = {"kind": rule.kind}
    for field in fields(rule):
        value = getattr(rule, field.name)
        if field.name != "kind" and value != field.default:
            record[field.name] = list(value) if isinstance(value, tuple) else value
    return record


def rule_from_json(record: Mapping[str, Any]) -> Rule:
    """The inverse of ``rule_to_json``.

    Whether the rule makes sense for a tool is another question, see ``rule_problems``.

    Raises:
        TypeError: The record is no rule: its kind or one of its parts is unknown, absent or of the
            wrong type.
    """
    if not isinstance(record, Mapping):
        raise TypeError(f"a rule is an object with a kind, got {record!r:.80}")
    kind: Any = record.get("kind")
    make: Any = _KINDS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise TypeError(f"there is no rule of kind {kind!r:.80}; known are {', '.join(_KINDS)}")
    if why := _misfit(dict(record), kind):
        raise TypeError(f"a rule of kind {kind} cannot be read: {why}")
    values = {key: tuple(part) if isinstance(part, list) else part for key, part in record.items()}
    rule: Rule = make(**values)
    return rule


def _misfit(record: JsonObject, kind: str, more: JsonObject | None = None) -> str:
    """Why a record is no rule of a kind; empty when it is one."""
    parts = fields(_KINDS[kind])
    form = {
        "properties": {part.name: _PARTS.get(part.name, _TEXT) for part in parts},
        "required": [part.name for part in parts if part.default is MISSING],
        "additionalProperties": False,
    }
    try:
        errors = schema_errors(record, {"allOf": [form, more or {}]})
    except UncheckableError as error:
        return str(error)
    owner = f"a part of a rule of kind {kind}"
    for problem in problems_of(errors, owner=owner, noun="part", whole="rule"):
        return problem.rule
    return "" if is_json(record) else "it holds a value that JSON does not have"
