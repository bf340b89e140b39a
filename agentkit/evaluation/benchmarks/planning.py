"""Tools as they are offered for a plan: all calls at once, with references for later values.

In a plan an argument may be a reference, ``$var1.field$``, where the tool asks for a number or a
list. A typed schema refuses that, and a call that its schema refuses is never kept. So every part
of a schema that does not take such a text anyway is widened by the one alternative "or a
reference"; all else stays as strict as it was. What a tool returns is told in a usage rule, since
a model that sees no results can only refer to fields that it knows of.

A learned rule (``agentkit.tools.rules``) would refuse references as well, since they are not among
its values. So in a plan its sentence is a usage rule, its narrowed schema holds plain values, and
the rule itself, which could only refuse, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence

REFERENCE: JsonObject = {"type": "string", "pattern": r"^\$var[0-9]+[^$]*\$$"}
"""Schema of a reference to an earlier call's result."""

MOST_FIELDS = 40
"""Fields of a result that are told. NESTFUL's gold refers to the first 40 in 99% of all cases."""

INSTRUCTIONS = (
    "Plan the whole answer before anything is run: make all tool calls that it takes, in their "
    "order, in one message. Nothing is run while you plan. Where a call needs what an earlier one "
    "will return, write a reference in place of the value: $var1.name$ is the field `name` of "
    "what the first call returns, $var2.items[0].id$ goes into a list, $var1$ is the whole result. "
    "Calls count from 1 in the order in which you make them. The tools say which fields they "
    "return."
)

_RETURNS = "Returns: "
_FREE_TEXT = frozenset({"type", "description", "title", "default", "examples"})
_OUTSIDE = ("description", "default")
"""Keywords of a parameter that must stand beside the alternatives to be found."""


def plannable(definition: ToolDefinition, fields: Sequence[str]) -> ToolDefinition:
    """The definition of a tool for plans: its arguments may be references.

    Args:
        definition: The tool.
        fields: Dotted paths of what it returns, outer ones first; the first ``MOST_FIELDS`` are
            told, unless a usage rule tells already.

    Returns:
        The definition. One that is for plans already comes back as it is.

    Example:
        >>> wait = ToolDefinition.from_schema(
        ...     "wait", "Wait.", {"type": "object", "properties": {"days": {"type": "integer"}}}
        ... )
        >>> plannable(wait, ["until"]).signature.properties["days"]["anyOf"][0]
        {'type': 'integer'}
        >>> plannable(wait, ["until"]).text.splitlines()[-1]
        'Returns: until.'
    """
    schema = definition.parameters_schema
    properties = {name: _widened(part) for name, part in schema.get("properties", {}).items()}
    made = ToolDefinition.from_schema(
        definition.name, definition.description.summary, {**schema, "properties": properties}
    )
    learned = map(rule_sentence, definition.specification.rules)
    rules = (*definition.description.usage_rules, *learned)
    if not any(rule.startswith(_RETURNS) for rule in rules):
        told = ", ".join(fields[:MOST_FIELDS]) or "a value"
        more = " and more" if len(fields) > MOST_FIELDS else ""
        rules = (*rules, f"{_RETURNS}{told}{more}.")
    return replace(
        definition,
        signature=replace(definition.signature, parameters=made.signature.parameters),
        description=replace(
            definition.description,
            parameters=made.description.parameters,
            usage_rules=rules,
        ),
        specification=replace(definition.specification, rules=()),
    )


def _widened(schema: Any) -> Any:
    """A part of a schema that takes a reference as well."""
    if not isinstance(schema, Mapping) or _takes_any_text(schema) or _takes_references(schema):
        return schema
    inside = {key: value for key, value in schema.items() if key not in _OUTSIDE}
    if isinstance(schema.get("properties"), Mapping):
        inside["properties"] = {name: _widened(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        inside["items"] = _widened(schema["items"])
    if isinstance(schema.get("allOf"), list):  # where a learned rule may stand
        inside["allOf"] = [_widened(part) for part in schema["allOf"]]
    outside = {key: schema[key] for key in _OUTSIDE if key in schema}
    return {"anyOf": [inside, REFERENCE], **outside}


def _takes_any_text(schema: JsonObject) -> bool:
    declared = schema.get("type", "string")
    names = declared if isinstance(declared, list) else [declared]
    return "string" in names and set(schema) <= _FREE_TEXT


def _takes_references(schema: JsonObject) -> bool:
    alternatives = schema.get("anyOf")
    is_open = schema.keys() <= {"anyOf", *_OUTSIDE}  # what stands beside holds references as well
    return is_open and isinstance(alternatives, list) and REFERENCE in alternatives
