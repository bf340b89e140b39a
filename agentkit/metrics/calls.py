"""When two sets of tool calls are the same answer (canonical call equality).

Self-refinement stops on it, self-consistency votes by it, and the metrics build on it. Two answers
are equal when they hold the same calls the same number of times, in whatever order: parallel
calls have none. Two calls are equal when they name the same tool and their arguments mean the
same under the tool's schema (``agentkit.tools.validation.canonical_arguments``): the order of keys,
``3`` against ``"3"`` for an integer, and a default written out or left out make no difference.
Ids of calls never count.

Canonical forms are compared, so the relation is an equivalence: reflexive, symmetric, transitive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from agentkit.messages import JsonObject, ToolCall
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import ArgumentValidator, canonical_arguments

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CanonicalCall(NamedTuple):
    """A call as a value that can be compared, sorted, hashed and counted.

    Attributes:
        name: The tool.
        arguments: Canonical arguments as JSON text; the text as received of a malformed call.
        is_malformed: Whether the arguments could not be read, or are too deep or too long to be
            compared under the schema. Such a call equals only one with the same arguments to the
            letter.
    """

    name: str
    arguments: str
    is_malformed: bool


def canonical_calls(
    calls: Iterable[ToolCall], definitions: Iterable[ToolDefinition]
) -> tuple[CanonicalCall, ...]:
    """The calls of one answer in a form in which equal answers are equal objects.

    Args:
        calls: The calls of one turn.
        definitions: The tools that may be called. The arguments of a tool that is not among them
            are taken as they are, but for the order of keys and whole numbers (``3.0`` is ``3``).

    Returns:
        The canonical calls, sorted.

    Example:
        >>> double = ToolDefinition.from_schema(
        ...     "double", "Twice a number.", {"properties": {"x": {"type": "integer"}}}
        ... )
        >>> answers = [
        ...     [ToolCall(call_id="a", name="double", arguments={"x": x})] for x in (3, "3", 4)
        ... ]
        >>> from collections import Counter
        >>> votes = Counter(canonical_calls(answer, [double]) for answer in answers)
        >>> votes.most_common(1)
        [((CanonicalCall(name='double', arguments='{"x":3}', is_malformed=False),), 2)]
    """
    schemas = {definition.name: definition.signature.parameters for definition in definitions}
    return tuple(sorted(_canonical(call, schemas.get(call.name, {})) for call in calls))


def calls_equal(
    a: Iterable[ToolCall], b: Iterable[ToolCall], definitions: Iterable[ToolDefinition]
) -> bool:
    """Whether two answers make the same calls; see the module's text for what that means.

    Args:
        a: The calls of one answer.
        b: The calls of another one.
        definitions: The tools that may be called.
    """
    known = tuple(definitions)
    return canonical_calls(a, known) == canonical_calls(b, known)


def _canonical(call: ToolCall, parameters: JsonObject) -> CanonicalCall:
    if call.malformed is not None:
        return CanonicalCall(name=call.name, arguments=call.malformed, is_malformed=True)
    try:
        arguments = canonical_arguments(call.arguments, parameters)
        # Not RFC 8785: models do write NaN and integers beyond 2**53, and these must compare too.
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    except (RecursionError, ValueError):  # hundreds of levels, or an integer of thousands of digits
        return CanonicalCall(
            name=call.name, arguments=_spelled_out(call.arguments), is_malformed=True
        )
    return CanonicalCall(name=call.name, arguments=text, is_malformed=False)


def _spelled_out(value: Any) -> str:
    """A text that only the same value has, however deep it is: containers with their lengths."""
    parts: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            parts.append(f"{{{len(item)}")
            todo.extend(part for key in sorted(item, reverse=True) for part in (item[key], key))
        elif isinstance(item, list | tuple):
            parts.append(f"[{len(item)}")
            todo.extend(reversed(item))
        else:
            parts.append(hex(item) if type(item) is int else json.dumps(item))
    return " ".join(parts)


def remembered(*, most: int = 4_096) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Remember what a pure function of a definition gives for the last ``most`` arguments.

    A definition whose schema is no JSON, with NaN for a default, say, has no digest to remember
    it by. For such a one the function is asked each time.
    """

    def wrap(make: Callable[_P, _T]) -> Callable[_P, _T]:
        known = lru_cache(maxsize=most)(make)

        @wraps(make)
        def find(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                return known(*args, **kwargs)  # type: ignore[arg-type]  # its stubs want Hashable
            except (RecursionError, ValueError):  # no digest, or an error of its own, raised again
                return make(*args, **kwargs)

        return find

    return wrap


@remembered()  # making one ready costs more than to check a call, and calls are many
def validator_of(definition: ToolDefinition) -> ArgumentValidator:
    """The one validator of a tool, for all calls that are looked at."""
    return ArgumentValidator(definition)
