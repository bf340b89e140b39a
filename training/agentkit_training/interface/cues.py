"""Schema cues: what a schema demands of an argument, said once more in the argument's own text.

C_aff of SEAL (Eq. 9, appendix D.2). The contract stays as it is: name, signature, conditions, rules
and examples of a definition are those of the original, so calls are validated and judged as before.
A cue is made of the schema alone and can say nothing that it does not state.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

CUES_NOTE = (
    "Each call gives every parameter that is marked as required, takes values only from the list "
    "of a parameter that has one, and names a tool that is listed here."
)
"""What is said about cues in the instructions, where there are some."""

MOST_VALUES = 20
"""Longest list of allowed values that is said again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CueKinds:
    """Which demands are said again. The defaults are those of SEAL's released configuration.

    Attributes:
        required: That a parameter must be given.
        enum: Which values are allowed.
        type: Of which type they are.
    """

    required: bool = True
    enum: bool = True
    type: bool = False


def cued(definition: ToolDefinition, kinds: CueKinds = CueKinds()) -> ToolDefinition:
    """The definition with a cue behind the text of each parameter that its schema demands a lot of.

    Nested parameters have cues as well. Cueing twice is cueing once.

    Args:
        definition: A tool. What its learned rules have narrowed counts as its schema.
        kinds: What to say.

    Example:
        >>> schema = {"properties": {"unit": {"enum": ["kg", "lb"]}}, "required": ["unit"]}
        >>> weigh = ToolDefinition.from_schema("weigh", "Weigh it.", schema)
        >>> cued(weigh).description.parameters["unit"]
        '[required; one of "kg", "lb"]'
    """
    texts = dict(definition.description.parameters)
    for path, part, is_required in _places(definition.parameters_schema, ""):
        cue = _cue(part, kinds, is_required=is_required)
        text = texts.get(path, "")
        if cue and not text.endswith(cue):
            texts[path] = f"{text} {cue}" if text else cue
    if texts == definition.description.parameters:
        return definition
    return replace(definition, description=replace(definition.description, parameters=texts))


def cued_library(
    library: Library,
    kinds: CueKinds = CueKinds(),
    *,
    names: Collection[str] | None = None,
) -> Library:
    """The library with cues, at the same version: what it holds is shown otherwise, not changed.

    Args:
        library: The tools.
        kinds: What to say.
        names: The tools to cue; None for all.
    """
    tools = [tool for tool in library if names is None or tool.name in names]
    return library.with_tools(tool.with_definition(cued(tool.definition, kinds)) for tool in tools)


def _places(schema: JsonObject, path: str) -> Iterator[tuple[str, JsonObject, bool]]:
    """Each parameter with its dotted path, its schema, and whether it must be given."""
    properties, required = schema.get("properties"), schema.get("required")
    must = required if isinstance(required, list | tuple) else ()
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(part, Mapping):
            inside = f"{path}.{name}" if path else name
            yield inside, part, name in must
            yield from _places(part, inside)
    items = schema.get("items")
    if path and isinstance(items, Mapping):
        yield f"{path}[]", items, False
        yield from _places(items, f"{path}[]")


def _cue(part: JsonObject, kinds: CueKinds, *, is_required: bool) -> str:
    values = _values(part)
    said = [
        "required" if kinds.required and is_required else "",
        f"one of {', '.join(map(_shown, values))}" if kinds.enum and values else "",
        _type(part) if kinds.type else "",
    ]
    words = "; ".join(filter(None, said))
    return f"[{words}]" if words else ""


def _values(part: JsonObject) -> list[Any]:
    """The allowed values, if they are few enough to say."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return list(values) if isinstance(values, list | tuple) and len(values) <= MOST_VALUES else []


def _type(part: JsonObject) -> str:
    kind = part.get("type")
    if isinstance(kind, list | tuple):
        return f"type {' or '.join(map(str, kind))}"
    return f"type {kind}" if isinstance(kind, str) else ""


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
