"""What one ``<description>`` block says, field by field, before it is held against a tool.

Two forms are read: the JSON object that our prompts ask for, and the labelled lines of ToolDNA's
template (figure 3). A text is only ever decoded, never run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.evolution.proposals.blocks import unreadable
from agentkit.evolution.proposals.labelled_block import LabelledBlock, read_labelled
from agentkit.evolution.validation.report import FailedCheck
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example
from agentkit.tools.rules import Rule, rule_from_json

_NAMES = {
    "tool": "tool",
    "tool_name": "tool",
    "name": "tool",
    "summary": "summary",
    "description": "summary",
    "parameters": "parameters",
    "usage_rules": "usage_rules",
    "rules": "rules",
    "examples": "examples",
    "tags": "tags",
}
"""Names of fields as models write them, and ours."""

_DEEPEST = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterWords:
    """What a block says of one parameter.

    Attributes:
        text: Its description; None when none is given.
        keywords: What else is said of it, in words of JSON Schema.
    """

    text: str | None = None
    keywords: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockFields:
    """What a block says; None for what it leaves out, which stays as it is.

    Attributes:
        tool: Name of the tool.
        summary: What the tool does.
        parameters: What is said of parameters, by dotted path; ``""`` stands for the arguments
            object itself.
        usage_rules: The sentences on use, all of them.
        rules: The learned rules, all of them.
        examples: Worked calls.
        tags: Labels, all of them.
    """

    tool: str
    summary: str | None = None
    parameters: Mapping[str, ParameterWords] = field(default_factory=dict)
    usage_rules: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] | None = None
    examples: tuple[Example, ...] | None = None
    tags: tuple[str, ...] | None = None


class UnreadableBlockError(Exception):
    """A block says nothing that can be held against a tool. It never leaves this package.

    Attributes:
        failed: All reasons.
        tool: The tool that it is about, as far as it says so.
    """

    def __init__(self, *failed: FailedCheck, tool: str = "") -> None:
        self.failed = failed
        self.tool = tool
        super().__init__("; ".join(map(str, failed)))


def read_fields(text: str) -> BlockFields:
    """What a block says.

    Args:
        text: What stands between the tags.

    Raises:
        UnreadableBlockError: It is in neither form, or fields are unknown or of a wrong kind.

    Example:
        >>> read_fields('{"tool": "loan", "parameters": {"periods": "36, 48 or 60."}}').parameters
        {'periods': ParameterWords(text='36, 48 or 60.', keywords={})}
    """
    if not is_json(text):
        raise UnreadableBlockError(
            unreadable("invalid_text", "the block holds half of a surrogate pair", "")
        )
    body = _without_fence(text)
    return _of_json(body) if body.startswith(("{", "[")) else _of_labelled(read_labelled(body))


def _without_fence(text: str) -> str:
    body = text.strip().removeprefix("\ufeff").strip()
    if body.startswith("```") and body.endswith("```") and len(body) >= 6:
        opening, _, rest = body[:-3].partition("\n")
        body = rest.strip() if opening[3:].strip().isalnum() or opening == "```" else body
    return body


def _of_labelled(labelled: LabelledBlock) -> BlockFields:
    if labelled.failed:
        raise UnreadableBlockError(*labelled.failed, tool=labelled.tool)
    return BlockFields(
        tool=labelled.tool,
        summary=labelled.summary,
        parameters={
            name: ParameterWords(text=text, keywords={"type": kind} if kind else {})
            for name, kind, text in labelled.parameters
        },
        usage_rules=labelled.usage_rules,
    )


def _of_json(body: str) -> BlockFields:
    record = _decoded(body)
    failed: list[FailedCheck] = []
    values: dict[str, Any] = {}
    for name, value in record.items():
        ours = _NAMES.get(name)
        if ours is None:
            known = ", ".join(sorted(set(_NAMES.values())))
            why = f"there is no field {name[:60]!r}; known are {known}"
            failed.append(unreadable("unknown_field", why, body, field=name[:60]))
        elif ours in values:
            why = f"{ours} is given twice"
            failed.append(unreadable("duplicate_field", why, body, field=ours))
        else:
            values[ours] = value
    tool = values.get("tool")
    name = tool.strip() if isinstance(tool, str) else ""
    if not name:
        failed.append(unreadable("no_tool_name", "the block does not name its tool", body))
    for ours in [ours for ours in _READERS if ours in values]:
        try:
            values[ours] = _READERS[ours](values[ours])
        except (TypeError, ValueError) as error:
            code = "invalid_rule" if ours == "rules" else "wrong_field_type"
            failed.append(unreadable(code, f"{ours}: {error}", body, field=ours))
    if failed:
        raise UnreadableBlockError(*failed, tool=name)
    return BlockFields(**{**values, "tool": name})


def _decoded(body: str) -> dict[str, Any]:
    try:
        record = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
        is_data = is_json(record)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, too
        why = f"not JSON: {str(error)[:200] or 'it is nested too deeply'}"
        raise UnreadableBlockError(unreadable("invalid_json", why, body)) from error
    if not is_data:
        why = "it holds what JSON can not carry, such as an infinite number"
        raise UnreadableBlockError(unreadable("invalid_json", why, body))
    if not isinstance(record, dict):
        why = f"a block is one JSON object, this is a {type(record).__name__}"
        raise UnreadableBlockError(unreadable("invalid_json", why, body))
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            message = f"the field {name[:60]!r} is given twice"
            raise ValueError(message)
        made[name] = value
    return made


def _no_constant(name: str) -> Any:
    message = f"{name} is no JSON"
    raise ValueError(message)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"expected a text, got {type(value).__name__}"
        raise TypeError(message)
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        message = f"expected a list of texts, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(text for text in map(_text, value) if text)


def _parameters(value: Any) -> dict[str, ParameterWords]:
    if not isinstance(value, dict):
        message = f"expected an object with a text for each parameter, got {type(value).__name__}"
        raise TypeError(message)
    found: dict[str, ParameterWords] = {}
    if isinstance(value.get("properties"), dict) and value.get("type", "object") == "object":
        _of_schema(value, "", found, _DEEPEST)
        return found
    for name, said in value.items():
        if isinstance(said, dict):
            _of_schema(said, name, found, _DEEPEST)
        else:
            found[name] = ParameterWords(text=_text(said))
    return found


def _of_schema(
    schema: dict[str, Any], path: str, found: dict[str, ParameterWords], depth: int
) -> None:
    """What a schema says of the parameter at ``path`` and of those inside of it."""
    if not depth:
        message = f"the schema is nested deeper than {_DEEPEST}"
        raise ValueError(message)
    inside = {"properties", "items", "description"}
    text = schema.get("description")
    found[path] = ParameterWords(
        text=None if text is None else _text(text),
        keywords={name: part for name, part in schema.items() if name not in inside},
    )
    properties, items = schema.get("properties", {}), schema.get("items")
    if not isinstance(properties, dict):
        message = f"properties of {path or 'the arguments'} are no object"
        raise TypeError(message)
    for name, part in properties.items():
        if not isinstance(part, dict):
            message = f"the schema of {name[:60]!r} is no object"
            raise TypeError(message)
        _of_schema(part, f"{path}.{name}" if path else name, found, depth - 1)
    if isinstance(items, dict):
        _of_schema(items, f"{path}[]", found, depth - 1)


def _rules(value: Any) -> tuple[Rule, ...]:
    if not isinstance(value, list):
        message = f"expected a list of rules, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(map(rule_from_json, value))


def _examples(value: Any) -> tuple[Example, ...]:
    if not isinstance(value, list):
        message = f"expected a list of worked calls, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(_example(item) for item in value)


def _example(value: Any) -> Example:
    known = {"arguments", "result", "query"}
    if not isinstance(value, dict) or not isinstance(value.get("arguments"), dict):
        message = "a worked call is an object with arguments"
        raise TypeError(message)
    if set(value) - known:
        message = f"a worked call has {', '.join(sorted(known))}, not {sorted(set(value) - known)}"
        raise TypeError(message)
    return Example(
        arguments=value["arguments"],
        result=value.get("result"),
        query=_text(value.get("query", "")),
    )


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "summary": _text,
    "parameters": _parameters,
    "usage_rules": _texts,
    "rules": _rules,
    "examples": _examples,
    "tags": _texts,
}
