"""What a call gave, as the answer to ``tools/call``."""

from __future__ import annotations

from typing import Any

from agentkit.mcp.wire import RESULT_FIELD, describes_object
from agentkit.messages import ToolResult
from agentkit.tools.definition import ToolDefinition


def call_record(result: ToolResult, definition: ToolDefinition | None) -> dict[str, Any]:
    """A result as the protocol has it.

    A failed, refused or waiting call is an answer with ``isError`` whose text says what a model
    can do about it; it is no error of the protocol.

    Args:
        result: What came of the call.
        definition: The tool; None for one that there is not.
    """
    text = result.text or ("" if result.status == "ok" else result.status)
    record: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "isError": result.status != "ok",
        "resultType": "complete",
    }
    schema = None if definition is None else definition.signature.result
    if result.status == "ok" and schema is not None:
        value = result.value
        is_object = describes_object(schema)
        record["structuredContent"] = value if is_object else {RESULT_FIELD: value}
    return record


def error_record(text: str) -> dict[str, Any]:
    """An answer that tells a model why there was no call."""
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "resultType": "complete",
    }
