"""Calls against lists of allowed values, the way the Berkeley leaderboard (BFCL) judges them.

A gold call names a tool and, for each argument, the values that are right. The rules are those of
BFCL's AST checker for Python (Patil et al., "The Berkeley Function Calling Leaderboard", ICML
2025; package ``bfcl_eval`` 2026.3.23), stated here in full:

* A value must be of the declared type to begin with; an integer is taken for a number, a number
  is not taken for an integer, nothing else is converted. A parameter without a declared type
  expects a string. A value of another type still counts when the allowed values are of that type.
* Strings are equal when they are so without spaces, without the signs ``, . / - _ * ^``, without
  case, and with both kinds of quotes taken for one.
* Lists are equal element by element, in order. An element must be of the declared item type, or
  of the type that the allowed elements have; here an integer is not taken for a number.
* For an object, the allowed values of each key are listed again inside it; lists of objects are
  compared one by one.
* ``""`` among the allowed values means that the argument, or the key, may be left out. All others
  must be given, whatever the schema says, and nothing else may be given.
* Several calls match in any order.

One thing is better than upstream: calls are assigned to gold calls so that as many as possible
match, where upstream takes the first that fits and may then fail the rest. Verdicts therefore do
not depend on the order in which a model wrote parallel calls.

BFCL's Java and JavaScript categories, whose answers are source text in those languages, are not
covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.errors import UsageError
from agentkit.messages import JsonObject, ToolCall
from agentkit.tools.definition import ToolDefinition

_IGNORED_SIGNS = re.compile(r"[ ,./\-_*^]")
_PYTHON_TYPES: Mapping[object, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}

MismatchKind = Literal[
    "wrong_tool",  # the call names another tool
    "malformed_arguments",  # the argument text is not a JSON object
    "missing_argument",  # an argument that must be given is not there
    "unexpected_argument",  # an argument that neither the tool nor the gold call knows
    "wrong_type",  # not of the declared type, nor of the type of the allowed values
    "wrong_value",  # of the right type, but none of the allowed values
]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedCall:
    """A gold call.

    Attributes:
        name: The tool.
        allowed: The allowed values of each argument; ``""`` among them: may be left out.
    """

    name: str
    allowed: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """One reason why a call is not the expected one.

    Attributes:
        kind: What is wrong.
        argument: The argument in question; empty when it is the call as a whole.
        value: What was given.
        allowed: What would have been right.
    """

    kind: MismatchKind
    argument: str = ""
    value: Any = None
    allowed: tuple[Any, ...] = ()

    def __str__(self) -> str:
        where = f"argument {self.argument!r}: " if self.argument else ""
        given = "" if self.kind == "missing_argument" else f", got {self.value!r}"
        wanted = f", allowed {list(self.allowed)!r}" if self.allowed else ""
        return f"{where}{self.kind.replace('_', ' ')}{given}{wanted}"


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmatchedCall:
    """A gold call that no call matched.

    Attributes:
        expected: Its index among the gold calls.
        nearest: Index of the unmatched call that came closest; None when none was left.
        mismatches: All that is wrong with the nearest call.
    """

    expected: int
    nearest: int | None = None
    mismatches: tuple[Mismatch, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedValuesResult:
    """How calls compare to gold calls.

    Attributes:
        pairs: Index of gold call and call of each match.
        unmatched: Gold calls without a match, with the reasons.
        spurious: Indexes of calls that matched no gold call.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    unmatched: tuple[UnmatchedCall, ...] = ()
    spurious: tuple[int, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every gold call was made, and no other call."""
        return not self.unmatched and not self.spurious


def match_allowed_values(
    calls: Sequence[ToolCall],
    expected: Sequence[AllowedCall],
    definitions: Iterable[ToolDefinition],
) -> AllowedValuesResult:
    """Compare calls with gold calls by BFCL's rules (see the module's text).

    Args:
        calls: What the model called, values as it wrote them.
        expected: The gold calls.
        definitions: The tools, for the declared types of the gold calls' arguments.

    Returns:
        The best assignment of calls to gold calls, and the reasons for what is left over.

    Raises:
        UsageError: A gold call names a tool that is not among the definitions.

    Example:
        >>> book = ToolDefinition.from_schema(
        ...     "book",
        ...     "Book a table.",
        ...     {"properties": {"day": {"type": "string"}, "seats": {"type": "integer"}}},
        ... )
        >>> gold = AllowedCall(name="book", allowed={"day": ["April 1, 2026"], "seats": [2, ""]})
        >>> call = ToolCall(call_id="1", name="book", arguments={"day": "april 1 2026"})
        >>> match_allowed_values([call], [gold], [book]).passed
        True
        >>> late = ToolCall(call_id="1", name="book", arguments={"day": "May 1", "seats": 2})
        >>> print(match_allowed_values([late], [gold], [book]).unmatched[0].mismatches[0])
        argument 'day': wrong value, got 'May 1', allowed ['April 1, 2026']
    """
    known = {definition.name: definition for definition in definitions}
    absent = [gold.name for gold in expected if gold.name not in known]
    if absent:
        raise UsageError(f"gold calls name tools that are not among the definitions: {absent}")
    faults = [[_mismatches(call, gold, known[gold.name]) for call in calls] for gold in expected]
    pairs = _assignment([[not fault for fault in row] for row in faults])
    spurious = tuple(at for at in range(len(calls)) if at not in pairs.values())
    unmatched = [
        _unmatched(at, faults[at], spurious) for at in range(len(expected)) if at not in pairs
    ]
    return AllowedValuesResult(
        pairs=tuple(sorted(pairs.items())), unmatched=tuple(unmatched), spurious=spurious
    )


def _unmatched(
    expected: int, faults: Sequence[tuple[Mismatch, ...]], left: Sequence[int]
) -> UnmatchedCall:
    if not left:
        return UnmatchedCall(expected=expected)
    nearest = min(left, key=lambda at: (faults[at][0].kind == "wrong_tool", len(faults[at]), at))
    return UnmatchedCall(expected=expected, nearest=nearest, mismatches=faults[nearest])


def _assignment(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """A largest assignment of rows to columns that fit (augmenting paths, Kuhn 1955)."""
    row_of: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in row_of or place(row_of[column], tried):
                    row_of[column] = row
                    return True
        return False

    for row in range(len(fits)):
        place(row, set())
    return {row: column for column, row in row_of.items()}


def _mismatches(
    call: ToolCall, gold: AllowedCall, definition: ToolDefinition
) -> tuple[Mismatch, ...]:
    """All that keeps a call from being the gold call; empty when it is."""
    if call.name != gold.name:
        return (Mismatch(kind="wrong_tool", value=call.name, allowed=(gold.name,)),)
    if call.malformed is not None:
        return (Mismatch(kind="malformed_arguments", value=call.malformed),)
    given = call.arguments
    found: list[Mismatch] = []
    required = set(definition.signature.required)
    for name in dict.fromkeys((*definition.signature.required, *gold.allowed)):
        allowed = tuple(gold.allowed.get(name, ()))
        if name not in given and (name in required or "" not in allowed):
            found.append(Mismatch(kind="missing_argument", argument=name, allowed=allowed))
    for name, value in given.items():
        schema = definition.signature.properties.get(name)
        allowed = tuple(gold.allowed.get(name, ()))
        kind: MismatchKind | None = "unexpected_argument"
        if schema is not None and name in gold.allowed:
            kind = _fault(value, schema, allowed)
        if kind is not None:
            found.append(Mismatch(kind=kind, argument=name, value=value, allowed=allowed))
    return tuple(found)


def _fault(value: Any, schema: JsonObject, allowed: Sequence[Any]) -> MismatchKind | None:
    declared = _declared(schema)
    if isinstance(value, tuple):
        value = list(value)
    if type(value) is int and float in declared and int not in declared:
        value = float(value)
    usual = next((type(answer) for answer in allowed if answer != ""), None)
    if type(value) not in declared:
        if type(value) is not usual:
            return "wrong_type"
        return None if value in allowed else "wrong_value"
    items = _declared(schema["items"]) if _types_items(schema) else None
    if isinstance(value, list) and items is not None and not _items_fit(value, items, allowed):
        return "wrong_type"
    if usual is not None and usual not in declared:
        return None if value in allowed else "wrong_value"
    return None if _is_allowed(value, allowed, items or frozenset()) else "wrong_value"


def _declared(schema: JsonObject) -> frozenset[type]:
    names = schema.get("type", "string")
    names = names if isinstance(names, list) else [names]
    return frozenset(_PYTHON_TYPES.get(name, str) for name in names)


def _types_items(schema: JsonObject) -> bool:
    return isinstance(schema.get("items"), Mapping) and "type" in schema["items"]


def _items_fit(value: list[Any], items: frozenset[type], allowed: Sequence[Any]) -> bool:
    """Whether each element is of the item type, or of the type that some answer's elements have."""
    return any(not isinstance(answer, list) or _like(value, items, answer) for answer in allowed)


def _like(value: list[Any], items: frozenset[type], answer: list[Any]) -> bool:
    usual = next((type(item) for item in answer if item != ""), None)
    return all(type(item) in items or type(item) is usual for item in value)


def _is_allowed(value: Any, allowed: Sequence[Any], items: frozenset[type]) -> bool:
    if isinstance(value, dict):
        return any(_object_allowed(value, answer) for answer in allowed)
    if isinstance(value, list) and dict in items:
        return any(_objects_allowed(value, answer) for answer in allowed)
    if isinstance(value, list):
        plain = [_plain(item) for item in value]
        answers = [_elements(answer) for answer in allowed]
        return any(
            plain == [_plain(item) for item in answer] for answer in answers if answer is not None
        )
    return _plain(value) in [_plain(answer) for answer in allowed]


def _elements(answer: Any) -> list[Any] | None:
    """The elements of a list among the answers; "may be left out" also allows an empty list."""
    if isinstance(answer, list | tuple):
        return list(answer)
    return [] if answer == "" else None


def _objects_allowed(value: list[Any], answer: Any) -> bool:
    elements = _elements(answer)
    if elements is None or len(value) != len(elements):
        return False
    return all(map(_object_allowed, value, elements))


def _object_allowed(value: Any, answer: Any) -> bool:
    """Whether each key holds one of the values that ``answer`` lists for it."""
    if not isinstance(value, dict) or not isinstance(answer, Mapping):
        return False
    options = {key: _as_list(listed) for key, listed in answer.items()}
    if any(key not in value and "" not in listed for key, listed in options.items()):
        return False
    return all(
        key in options and _plain(item) in [_plain(option) for option in options[key]]
        for key, item in value.items()
    )


def _as_list(listed: Any) -> list[Any]:
    return list(listed) if isinstance(listed, list | tuple) else [listed]


def _plain(value: Any) -> Any:
    """A string without what the comparison ignores; anything else as it is."""
    if isinstance(value, str):
        return _IGNORED_SIGNS.sub("", value).lower().replace("'", '"')
    return value
