"""Whether a task can be asked and judged with the tools that there are.

A gold call that the tool's own schema refuses is a contradiction: the runtime refuses such a call,
so an agent that keeps to the schema is counted as wrong. Most often it is a slip in the task, which
is therefore left out, with the reason.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from agentkit.evaluation.expectations import (
    AllowedCalls,
    CustomExpectation,
    ExactCalls,
    Expectation,
    FinalState,
    GoldCall,
)
from agentkit.evaluation.task import Task
from agentkit.messages import JsonObject
from agentkit.metrics import AllowedCall
from agentkit.metrics.calls import remembered
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import ArgumentValidator, coerce

_NAMED = 5  # so many tools, where none is like the one that is asked for


def task_problems(task: Task, definitions: Mapping[str, ToolDefinition]) -> Iterator[str]:
    """Why a task can not be asked or judged, in words; nothing when it can.

    Args:
        task: The task.
        definitions: The tools that there are, by name.
    """
    offered: list[str] = []
    for at, turn in enumerate(task.turns):
        where = f"follow_ups.{at - 1}." if at else ""
        for name in turn.offers:
            if name in offered:
                yield f"{where}tools: {name!r} is there twice"
            elif name not in definitions:
                yield f"{where}tools: {unknown_tool(name, definitions)}"
            offered.append(name)
        for expectation in turn.expects:
            for problem in _gold_problems(expectation, definitions, offered):
                yield f"{where}expects: {problem}"


def unknown_tool(name: str, known: Collection[str]) -> str:
    """That there is no tool of a name, and what was probably meant."""
    said = f"there is no tool {name!r}"
    if not known:
        return f"{said}; no tools were given, see `tools` and `environment`"
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"{said}; did you mean {near[0]!r}?"
    return f"{said}; there are {', '.join(sorted(known)[:_NAMED])}"


def _gold_problems(
    expectation: Expectation, definitions: Mapping[str, ToolDefinition], offered: Collection[str]
) -> Iterator[str]:
    if isinstance(expectation, CustomExpectation):
        for name in expectation.gold_tools:
            if name not in definitions:
                yield f"the gold call {name}: {unknown_tool(name, definitions)}"
        return
    if not isinstance(expectation, AllowedCalls | ExactCalls | FinalState):
        return
    callable_here = definitions if isinstance(expectation, FinalState) else offered
    for call in expectation.calls:
        definition = definitions.get(call.name)
        if definition is None:
            reasons: Iterable[str] = (unknown_tool(call.name, definitions),)
        elif call.name not in callable_here:
            reasons = ("the task does not offer this tool",)
        elif isinstance(call, GoldCall):
            reasons = gold_call_problems(call, definition)
        elif isinstance(expectation, AllowedCalls) and expectation.language is not None:
            continue  # the values are source text of that language
        else:
            reasons = _never(call, definition)
        yield from (f"the gold call {call.name}: {why}" for why in reasons)


def gold_call_problems(
    call: GoldCall, definition: ToolDefinition, *, unknown: Collection[str] = ()
) -> Iterator[str]:
    """What the tool's schema has against a gold call.

    Args:
        call: The gold call.
        definition: Its tool.
        unknown: Arguments whose values are not known, so that any will do.
    """
    yield from _undeclared(call.arguments, definition)
    arguments = coerce(dict(call.arguments), definition.signature.parameters, fill="none")
    for problem in validator_of(definition).check(arguments):
        if not (problem.path and problem.path[0] in unknown):
            yield problem.rule


@remembered(most=4_096)  # making one ready costs more than to check a call, and calls are many
def validator_of(definition: ToolDefinition) -> ArgumentValidator:
    """The one validator of a tool, for all gold calls that it is in."""
    return ArgumentValidator(definition)


def _never(call: AllowedCall, definition: ToolDefinition) -> Iterator[str]:
    """Arguments of a gold call none of whose allowed values the tool's schema takes."""
    yield from _undeclared(call.allowed, definition)
    for name in definition.signature.required:
        if not any(value != "" for value in call.allowed.get(name, ())):
            yield f"the required argument {name!r} has no allowed value"
    for name, values in call.allowed.items():
        if name not in definition.signature.properties or "" in values:
            continue  # it may be left out
        if any(map(_holds_object, values)):
            continue  # inside objects, allowed values are lists again
        reasons = [_first_fault(definition, name, value) for value in values]
        if reasons and all(reasons):
            yield f"{reasons[0]}, and no other allowed value is better"


def _first_fault(definition: ToolDefinition, name: str, value: Any) -> str:
    """What the schema has against one argument; empty when nothing."""
    given = coerce({name: value}, definition.signature.parameters, fill="none")
    for problem in validator_of(definition).check(given):
        if problem.path and problem.path[0] == name:
            return problem.rule
    return ""


def _undeclared(arguments: JsonObject, definition: ToolDefinition) -> Iterator[str]:
    parameters = definition.signature.parameters
    if parameters.get("additionalProperties") or parameters.get("patternProperties"):
        return
    known = definition.signature.properties
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield f"{definition.name} has no parameter {name!r}{meant}"


def _holds_object(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_object, value))
    return isinstance(value, Mapping)
