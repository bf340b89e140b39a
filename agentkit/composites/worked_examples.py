"""L4 of a composite: worked calls from its docstring and its decorator, checked against L1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.composites.authored import Authored
from agentkit.composites.faults import Fault, Place
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example
from agentkit.tools.fit import fits
from agentkit.tools.sources.docstrings import read_worked_call, worked_calls

_CALL_ADVICE = (
    "Behind the prompt write a call such as `{name}(1, x=2)`, with constants alone, and on the "
    "next line the value that it returns."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """One worked call, and its syntax or its place."""

    example: Example
    node: object


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleReading:
    """The worked calls of a composite.

    Attributes:
        examples: Those of the decorator first, then those of the docstring; each once.
        faults: What is wrong with the others.
    """

    examples: tuple[Example, ...]
    faults: tuple[Fault, ...]


def read_examples(
    authored: Authored,
    docstring: str,
    *,
    name: str,
    parameters: JsonObject,
    result: JsonObject | None,
    place: Place,
) -> ExampleReading:
    """Read the worked calls of a composite.

    Args:
        authored: What stands in its decorator.
        docstring: Its docstring as written.
        name: Its name, by which the docstring calls it.
        parameters: The schema of its arguments.
        result: The schema of its result; None when it is not declared.
        place: Where the docstring starts.
    """
    faults: list[Fault] = []
    read = [
        *_from_decorator(authored),
        *_from_docstring(docstring, name, tuple(parameters.get("properties", ())), place, faults),
    ]
    kept: list[Example] = []
    for item in read:
        why = _misfit(item.example, parameters, result)
        if why:
            advice = "Give every required argument, in JSON values of the declared types."
            faults.append(Fault(item.node, "example", why, advice))
        elif item.example not in kept:
            kept.append(item.example)
    return ExampleReading(examples=tuple(kept), faults=tuple(faults))


def _from_decorator(authored: Authored) -> Iterator[_Read]:
    for at, record in enumerate(authored.examples):
        yield _Read(example=Example(**record), node=authored.node("examples", at))


def _from_docstring(
    docstring: str,
    name: str,
    parameters: Sequence[str],
    start: Place,
    faults: list[Fault],
) -> Iterator[_Read]:
    for offset, block in worked_calls(docstring):
        indent = len(block[0]) - len(block[0].lstrip())
        place = (start[0] + offset, indent + 1 + (start[1] - 1 if offset == 0 else 0))
        try:
            example = read_worked_call(block, function_name=name, parameters=parameters)
        except ValueError as error:
            message = f"a worked call of the docstring can not be read: {error}"
            faults.append(Fault(place, "example", message, _CALL_ADVICE.format(name=name)))
        else:
            yield _Read(example=example, node=place)


def _misfit(example: Example, parameters: JsonObject, result: JsonObject | None) -> str:
    arguments: dict[str, Any] = dict(example.arguments)
    if not is_json(arguments) or not is_json(example.result):
        return f"the worked call with {arguments!r} holds a number that JSON can not write"
    if fits(arguments, parameters) is False:
        return f"the arguments {arguments!r} of a worked call break the declared types"
    has_result = example.result is not None and result is not None
    if has_result and fits(example.result, result, root=result) is False:
        return f"the result {example.result!r} of a worked call breaks the declared type"
    return ""
