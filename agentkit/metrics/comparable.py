"""Calls in the form in which the metrics compare them argument by argument.

``agentkit.metrics.calls`` says whether two calls are the same; grading how far apart they are
takes their arguments one by one. The form here says the same: two calls are equal there exactly
when they are equal here (a property test holds that).

Bringing arguments into canonical form costs most of the time that scoring takes, and most
arguments need no bringing: a text for a parameter declared as text is canonical as it is. So each
definition gets a plan, made once, that says for which parameters that holds; whatever it does not
cover goes through ``canonical_arguments``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.remembering import remembered
from agentkit.tools.coercion import canonical_arguments
from agentkit.tools.definition import ToolDefinition

_DEEPEST = 100
"""Arguments nested deeper than this are not read: no tool means them, and recursion would end."""

_MAX_EXACT_INTEGER = 2**53

_MAPPINGS = (dict, Mapping)  # nearly all are dicts, which is quick to see

_MOST_BITS = 14_284
"""4,300 decimal digits, where Python stops to write integers."""

_ABSENT = ("absent",)
"""The mark of an argument that has a default in other calls but not in this one."""

_SCALARS = frozenset({str, int, float, bool, type(None)})

_SILENT = frozenset(
    {
        *("type", "description", "title", "default", "examples", "deprecated"),
        *("format", "pattern", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems"),
    }
)
"""Keywords that do not change what a value of the declared type is coerced to."""

_PLAIN_OBJECT = frozenset({"type", "properties", "required", "description", "title", "$schema"})

_PLAIN_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
"""The values that are canonical as they are, but for floats without a fraction."""


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

    @property
    def key(self) -> Hashable:
        """Equal for equal calls; meant for readable ones."""
        return self.name, self.facts

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
    if isinstance(definitions, _MAPPINGS):
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
    arguments = call.arguments
    malformed = call.malformed if isinstance(call, ToolCall) else None
    plan = _NO_PLAN if definition is None else _plan(definition)
    values = plan.canonical(arguments) if malformed is None else None
    if values is None:
        return ComparableCall(name=call.name, is_readable=False, definition=definition)
    marks = {name: v if type(v) is str else mark_of(v) for name, v in values.items()}
    for name, mark in plan.marks.items():
        if marks.setdefault(name, _ABSENT) == mark:
            del marks[name]
    return ComparableCall(
        name=call.name,
        given=frozenset(arguments),
        values=values,
        marks=marks,
        definition=definition,
    )


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


_Reader: TypeAlias = Callable[[Any], Any]
"""Gives the canonical form of a value, or ``_UNSURE``."""

_UNSURE = object()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What canonical form means for one tool.

    Attributes:
        parameters: Its schema.
        readers: How to read the values of parameters that need no coercion when they are right.
        defaults: The canonical defaults that a call without arguments gets.
        marks: Their marks.
    """

    parameters: JsonObject = field(default_factory=dict)
    readers: Mapping[str, _Reader] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Hashable] = field(default_factory=dict)

    def canonical(self, arguments: JsonObject) -> Mapping[str, Any] | None:
        """As ``canonical_arguments`` says, but for the order of the keys; None if unreadable."""
        if not self.readers or type(arguments) is not dict:
            readable = is_readable(arguments)
            return canonical_arguments(arguments, self.parameters) if readable else None
        values = dict(self.defaults)
        unsure: dict[str, Any] = {}
        for name, value in arguments.items():
            reader = self.readers.get(name)
            read = _UNSURE if reader is None else reader(value)
            if read is _UNSURE:
                unsure[name] = value
            else:
                values[name] = read
        if unsure:
            if not is_readable(unsure):
                return None
            read_slowly = canonical_arguments(unsure, self.parameters)
            values.update((name, read_slowly[name]) for name in unsure)
        return values


_NO_PLAN = _Plan()


@remembered()
def _plan(definition: ToolDefinition) -> _Plan:
    parameters = definition.signature.parameters
    defaults = canonical_arguments({}, parameters)
    return _Plan(
        parameters=parameters,
        readers=dict(_readers(parameters)),
        defaults=defaults,
        marks={name: mark_of(value) for name, value in defaults.items()},
    )


def _readers(parameters: JsonObject) -> Iterator[tuple[str, _Reader]]:
    """Readers of single parameters, where the schema around them changes nothing."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or parameters.get("type") != "object":
        return
    if not _PLAIN_OBJECT.issuperset(parameters):
        return
    for name, part in properties.items():
        reader = _reader(part)
        if reader is not None:
            yield name, reader


def _reader(part: Any) -> _Reader | None:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return None
    if kind in _PLAIN_TYPES and _SILENT.issuperset(part):
        return _scalar_reader(_PLAIN_TYPES[kind])
    if kind == "string" and (_SILENT | {"enum"}).issuperset(part):
        members = part["enum"]
        texts = isinstance(members, list) and all(type(member) is str for member in members)
        return _member_reader(frozenset(members)) if texts else None
    if kind == "array" and (_SILENT | {"items"}).issuperset(part):
        item = _reader(part.get("items"))
        return None if item is None else _array_reader(item)
    return None


def _scalar_reader(kinds: tuple[type, ...]) -> _Reader:
    def read(value: Any) -> Any:
        if type(value) not in kinds:
            return _UNSURE
        if type(value) is float and value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER:
            return int(value)
        return value

    return read


def _member_reader(members: frozenset[str]) -> _Reader:
    def read(value: Any) -> Any:
        return value if type(value) is str and value in members else _UNSURE

    return read


def _array_reader(item: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        items = [item(one) for one in value] if type(value) is list else [_UNSURE]
        return _UNSURE if _UNSURE in items else items

    return read
