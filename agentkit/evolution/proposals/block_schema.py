"""The JSON Schema of one block, for models whose answers can be held to a schema."""

from __future__ import annotations

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

_LONGEST_TEXT = 400
_LONGEST_RULE = 200
_MOST_RULES = 5
_MOST_VALUES = 50


def block_schema(definition: ToolDefinition) -> JsonObject:
    """What a block about one tool may say: its name, and words and rules for what it has.

    Every field but the name may be left out. Texts and lists are bounded, so that a small model
    that repeats itself comes to an end.

    Example:
        >>> loan = ToolDefinition(name="loan")
        >>> block_schema(loan)["properties"]["tool"]
        {'const': 'loan'}
    """
    names = sorted(definition.signature.properties)
    properties: dict[str, JsonObject] = {
        "tool": {"const": definition.name},
        "summary": _text(_LONGEST_TEXT),
        "usage_rules": _list(_text(_LONGEST_RULE), _MOST_RULES),
    }
    if names:
        texts = {name: _text(_LONGEST_TEXT) for name in names}
        properties["parameters"] = {
            "type": "object",
            "properties": texts,
            "additionalProperties": False,
        }
        properties["rules"] = _list({"anyOf": _rules(names)}, _MOST_RULES)
    return {
        "type": "object",
        "properties": properties,
        "required": ["tool"],
        "additionalProperties": False,
    }


def _rules(names: list[str]) -> list[JsonObject]:
    """The rules that the prompt offers: lists of values, ranges and formats."""
    value = {"type": ["string", "integer"]}
    return [
        _rule("one_of", names, values=_list(value, _MOST_VALUES)),
        _rule("between", names, minimum={"type": "number"}, maximum={"type": "number"}),
        _rule("form", names, format={"enum": ["date", "time", "date-time", "email", "uuid"]}),
    ]


def _rule(kind: str, names: list[str], **fields: JsonObject) -> JsonObject:
    properties = {"kind": {"const": kind}, "parameter": {"enum": names}, **fields}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(longest: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _list(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}
