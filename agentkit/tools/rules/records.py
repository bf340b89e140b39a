"""The kinds of learned rules, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

JsonScalar: TypeAlias = str | int | float | bool | None

NamedFormat = Literal["date", "time", "date-time", "email", "uri", "uuid"]
"""Forms with a checker of their own, in the words of JSON Schema."""


Measure = Literal["value", "length", "items"]
"""What a range is about."""


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
