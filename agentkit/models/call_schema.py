"""A JSON Schema for one answer, built from the tools on offer, for grammar-constrained decoding.

A small model that is told about tools in words rarely writes a valid call; one whose sampling is
held to this schema always does, and only the values are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.models.grammar.schema import Bounds, array_of, either, grammar_schema
from agentkit.tools.definition import ToolDefinition

CALLS = "calls"
"""Key of an answer that calls tools."""

ANSWER = "answer"
"""Key of an answer that does not."""


def call_schema(
    tools: Sequence[ToolDefinition],
    *,
    max_calls: int = 8,
    allow_text: bool = False,
    answer: JsonObject | None = None,
    bounds: Bounds | None = None,
) -> JsonObject:
    """The schema of one answer: ``{"calls": [{"name": ..., "arguments": {...}}]}``.

    What is generated under it satisfies the tool's own schema, and the rules that were learned
    about the tool, as far as a grammar can say
    (``agentkit.models.grammar.schema`` tells how far). Keys come in a fixed order, the name
    before the arguments. A tool whose schema nothing satisfies takes its parameters all the same.

    Args:
        tools: What may be called, in the order offered.
        max_calls: Most calls in one answer.
        allow_text: Also allow ``{"answer": ...}`` in place of calls.
        answer: Schema of that answer; None is text.
        bounds: Longest strings and arrays among the arguments; those of ``answer`` may be ten
            times as long.

    Raises:
        UsageError: No tool is offered, or nothing satisfies ``answer``.

    Example:
        >>> from agentkit.tools.definition import ToolDefinition
        >>> wait = ToolDefinition.from_schema(
        ...     "wait", "Wait.", {"type": "object", "properties": {"s": {"enum": [1, 5]}}}
        ... )
        >>> call_schema([wait], max_calls=1)["properties"]["calls"]["items"]["properties"]["name"]
        {'const': 'wait'}
    """
    if not tools:
        raise UsageError("no tool is offered, so there is no call to describe; offer at least one")
    limits = bounds or Bounds()
    call = either([_call(tool, limits) for tool in tools])
    calls = _closed({CALLS: array_of(call, 1, max(1, max_calls))})
    if not allow_text:
        return calls
    return either([calls, _closed({ANSWER: answer_schema(answer or {"type": "string"}, limits)})])


def answer_schema(schema: JsonObject, bounds: Bounds | None = None) -> JsonObject:
    """``schema`` for an answer to a person, with roomier bounds than arguments have.

    Raises:
        UsageError: Nothing satisfies ``schema``.
    """
    limits = bounds or Bounds()
    roomy = Bounds(characters=10 * limits.characters, items=limits.items)
    translated = grammar_schema(schema, roomy)
    if translated is None:
        raise UsageError(f"nothing satisfies the output schema {str(schema)[:200]}")
    return translated


def _call(tool: ToolDefinition, bounds: Bounds) -> JsonObject:
    parameters = tool.parameters_schema  # with what was learned, where a grammar can say it
    arguments = grammar_schema({"type": "object", **parameters}, bounds)
    if arguments is None:
        arguments = _despite_contradiction(tool, bounds)
    is_free = isinstance(arguments.get("additionalProperties"), Mapping)
    if is_free and "additionalProperties" not in parameters:
        arguments = {"const": {}}  # a tool without parameters takes none, it does not take any
    # The name comes first: it decides which arguments may follow.
    return _closed({"name": {"const": tool.name}, "arguments": arguments})


def _despite_contradiction(tool: ToolDefinition, bounds: Bounds) -> JsonObject:
    """Arguments for a schema that nothing satisfies, such as an integer with an enum of strings.

    The call will be refused, and the refusal names the rule; without a call nobody would learn
    that the definition is wrong.
    """
    anything = grammar_schema({}, bounds) or {"type": "string"}
    parts = tool.signature.properties.items()
    schemas = {name: grammar_schema(part, bounds) or anything for name, part in parts}
    required = [name for name in schemas if name in tool.signature.required]
    return {**_closed(schemas), "required": required}


def _closed(properties: dict[str, JsonObject]) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
