"""Definitions from where they are found: functions, pydantic models, JSON records.

Every source gives the same ``ToolDefinition`` and remembers in its ``origin`` where it came from.
"""

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
