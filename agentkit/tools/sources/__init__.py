"""Definitions from where they are found: functions, pydantic models, JSON records.

Every source gives the same ``ToolDefinition`` and remembers in its ``origin`` where it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.sources.dialects import (
        NormalisedSchema,
        SchemaChange,
        normalise_parameters,
        normalise_schema,
    )
    from agentkit.tools.sources.function import DefinitionOptions, definition_from_function
    from agentkit.tools.sources.json_schema import (
        DefinitionBatch,
        RejectedEntry,
        definition_from_json,
        definitions_from_json,
    )
    from agentkit.tools.sources.pydantic_model import definition_from_model

__all__ = [
    "DefinitionBatch",
    "DefinitionOptions",
    "NormalisedSchema",
    "RejectedEntry",
    "SchemaChange",
    "definition_from_function",
    "definition_from_json",
    "definition_from_model",
    "definitions_from_json",
    "normalise_parameters",
    "normalise_schema",
]

_MODULES = {
    "DefinitionBatch": "agentkit.tools.sources.json_schema",
    "DefinitionOptions": "agentkit.tools.sources.function",
    "NormalisedSchema": "agentkit.tools.sources.dialects",
    "RejectedEntry": "agentkit.tools.sources.json_schema",
    "SchemaChange": "agentkit.tools.sources.dialects",
    "definition_from_function": "agentkit.tools.sources.function",
    "definition_from_json": "agentkit.tools.sources.json_schema",
    "definition_from_model": "agentkit.tools.sources.pydantic_model",
    "definitions_from_json": "agentkit.tools.sources.json_schema",
    "normalise_parameters": "agentkit.tools.sources.dialects",
    "normalise_schema": "agentkit.tools.sources.dialects",
}

__getattr__ = lazy_door(__name__, _MODULES)
