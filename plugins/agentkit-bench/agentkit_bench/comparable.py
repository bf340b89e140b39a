"""Calls in the form in which they are compared argument by argument.

``agentkit.metrics.calls`` says whether two calls are the same; grading how far apart they are
takes their arguments one by one. The form here says the same: two calls are equal there exactly
when they are equal here (a property test holds that).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import remembered
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import canonical_arguments

_DEEPEST = 100
"""Arguments nested deeper than this are not read: no tool means them, and recursion would end."""

_MOST_BITS = 14_284
"""4,300 decimal digits, where Python stops to write integers."""

_ABSENT = ("absent",)
"""The mark of an argument that has a default in other calls but not in this one."""

_SCALARS = frozenset({str, int, float, bool, type(None)})


class CallLike(Protocol):
    """What a tool is asked: ``ToolCall``, a gold call, or any record with these two attributes."""

    @property
    def name(self) -> str:
        """The tool."""

    @property
    def arguments(self) -> JsonObject:
        """Its arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparableCall:
    """A call whose arguments can be compared one by one.

    Attributes:
        name: The tool.
        given: Names of the arguments that the call states.
        values: The canonical value of each argument, defaults of the others included.
        marks: For each argument that says something other than its default, a hashable value that
            is equal exactly for equal values. Equal marks make equal calls.
        is_readable: Whether there were arguments to read: the text was JSON, and not nested
            beyond reason.
        definition: The tool, if it is known.
        facts: ``marks`` as pairs of name and mark.
    """

    name: str
    given: frozenset[str] = frozenset()
    values: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Hashable] = field(default_factory=dict)
    is_readable: bool = True
    definition: ToolDefinition | None = None
    facts: frozenset[tuple[str, Hashable]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", frozenset(self.marks.items()))

    @property
    def arguments(self) -> JsonObject:
        """The canonical arguments."""
        return self.values

    def equals(self, other: ComparableCall) -> bool:
        """Whether both are the same call. An unreadable call is the same as no other."""
        return (
            self.name == other.name
            and self.is_readable
            and other.is_readable
            and self.marks == other.marks
        )


Definitions: TypeAlias = Iterable[ToolDefinition] | Mapping[str, ToolDefinition]
"""The tools that may be called; a mapping by name saves building one for each comparison."""


def by_name(definitions: Definitions) -> Mapping[str, ToolDefinition]:
    """The definitions by name; of several with one name the last."""
    if isinstance(definitions, Mapping):
        return definitions
    return {definition.name: definition for definition in definitions}


def comparable_calls(
    calls: Iterable[CallLike], definitions: Definitions
) -> tuple[ComparableCall, ...]:
    """The calls of an answer in comparable form. Whatever their arguments hold, there is one.

    Metrics take calls in this form as well: gold calls that many attempts are compared with, and
    calls that several metrics look at, need to be read only once.

    Args:
        calls: The calls.
        definitions: The tools. The arguments of a tool that is not among them are taken as they
            are.
    """
    known = by_name(definitions)
    return tuple(comparable_call(call, known) for call in calls)


def comparable_call(call: CallLike, known: Mapping[str, ToolDefinition]) -> ComparableCall:
    """One call in comparable form; see ``comparable_calls``."""
    if isinstance(call, ComparableCall):
        return call
    definition = known.get(call.name)
    malformed = call.malformed if isinstance(call, ToolCall) else None
    if malformed is not None or not is_readable(call.arguments):
        return ComparableCall(name=call.name, is_readable=False, definition=definition)
    schema = {} if definition is None else definition.signature.parameters
    values = canonical_arguments(call.arguments, schema)
    marks = {name: mark_of(value) for name, value in values.items()}
    for name, mark in () if definition is None else _defaults(definition):
        if marks.setdefault(name, _ABSENT) == mark:
            del marks[name]
    return ComparableCall(
        name=call.name,
        given=frozenset(call.arguments),
        values=values,
        marks=marks,
        definition=definition,
    )


@remembered()
def _defaults(definition: ToolDefinition) -> tuple[tuple[str, Hashable], ...]:
    """The marks of the arguments that a call without arguments has."""
    values = canonical_arguments({}, definition.signature.parameters)
    return tuple((name, mark_of(value)) for name, value in values.items())


def mark_of(value: Any) -> Hashable:
    """A hashable value that is equal exactly for equal canonical values: ``True`` is not ``1``.

    Example:
        >>> mark_of({"a": [1, True]}) == mark_of({"a": [1, 1]})
        False
        >>> mark_of(float("nan")) == mark_of(float("nan"))
        True
    """
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value  # type: ignore[no-any-return]  # a str, an int or None
    if kind is list:
        return ("array", tuple(map(mark_of, value)))
    if kind is dict:
        return ("object", tuple((key, mark_of(value[key])) for key in sorted(value)))
    return (kind.__name__, repr(value))


def is_readable(arguments: Any) -> bool:
    """Whether this is a JSON object, no deeper and with no longer numbers than we go."""
    if not isinstance(arguments, Mapping):
        return False
    level: list[Any] = [arguments]
    for _ in range(_DEEPEST):
        inside: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                if not all(type(key) is str for key in value):
                    return False
                inside.extend(item for item in value.values() if not _is_scalar(item))
            elif isinstance(value, list | tuple):
                inside.extend(item for item in value if not _is_scalar(item))
            else:
                return False
        if not inside:
            return True
        level = inside
    return False


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    return kind in _SCALARS and (kind is not int or value.bit_length() <= _MOST_BITS)
