"""What a tool says about its arguments, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentkit.tools.rules import JsonScalar, NamedFormat


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedSet:
    """A list of the values that are taken.

    Attributes:
        values: The values in the order in which they are told; as texts where they were read from
            one, whatever type they are to be of.
        is_closed: Whether the list is all there is: not cut short, and no mere examples.
        start: Where in the text it begins.
    """

    values: tuple[JsonScalar, ...]
    is_closed: bool = True
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedRange:
    """Bounds of a number.

    Attributes:
        minimum: The lower bound; None for none.
        maximum: The upper bound; None for none.
        above: Whether ``minimum`` itself is too small.
        below: Whether ``maximum`` itself is too large.
        multiple_of: The step; None for none.
        unit: What is counted, in a word; empty when the text does not say.
        start: Where in the text it begins.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    below: bool = False
    multiple_of: float | None = None
    unit: str = ""
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedForm:
    """The form of a text.

    Attributes:
        format: A form that has a name; empty when there is none.
        pattern: A regular expression that the whole text matches; empty when ``format`` says it,
            and when the form can only be told in words.
        words: The form in words.
        example: A text of that form; empty when none is known.
        start: Where in the text it begins.
    """

    format: NamedFormat | Literal[""] = ""
    pattern: str = ""
    words: str = ""
    example: str = ""
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedOrder:
    """One parameter stands in an order to another one.

    Attributes:
        left: Name of a parameter.
        sign: How it compares.
        right: Name of the other parameter.
        start: Where in the text it begins.
    """

    left: str
    sign: Literal["<", "<="]
    right: str
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedNeed:
    """One parameter needs another one.

    Attributes:
        parameter: The parameter that is given.
        other: The one that must be given with it.
        start: Where in the text it begins.
    """

    parameter: str
    other: str
    start: int = 0


Statement: TypeAlias = StatedSet | StatedRange | StatedForm | StatedOrder | StatedNeed
