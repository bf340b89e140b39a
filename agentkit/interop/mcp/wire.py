"""A definition as MCP lists it; the export of ``tools/list`` writes the same, so it lies below."""

from __future__ import annotations

from agentkit.tools.mcp_record import (
    EFFECTS_KEY,
    RESULT_FIELD,
    WRAPPED_KEY,
    describes_object,
    exact_effects,
    hints_of,
    is_wrapped,
    tool_record,
    unwrapped_schema,
    wrapped_schema,
)

__all__ = [
    "EFFECTS_KEY",
    "RESULT_FIELD",
    "WRAPPED_KEY",
    "describes_object",
    "exact_effects",
    "hints_of",
    "is_wrapped",
    "tool_record",
    "unwrapped_schema",
    "wrapped_schema",
]
