"""Bare JSON Schemas, for validators and code generators."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.export.renderers.parts import lost_parts
from agentkit.export.renderers.rendering import Rendering, definitions_of
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_json_schema(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
    """The schema of the arguments of each tool, by its name: whole documents, words included.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> schema = render_json_schema([sample_library()["bill_split"]]).value["bill_split"]
        >>> schema["title"], schema["type"]
        ('bill_split', 'object')
    """
    definitions = definitions_of(tools)
    value = {
        definition.name: {
            "$schema": DIALECT,
            "title": definition.name,
            "description": definition.text,
            **definition.parameters_schema,
        }
        for definition in definitions
    }
    return Rendering(
        value=value,
        losses=tuple(loss for definition in definitions for loss in lost_parts(definition)),
        names={definition.name: definition.name for definition in definitions},
        schemas={one.name: one.signature.parameters for one in definitions},
    )
