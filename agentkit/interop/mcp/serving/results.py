"""What a call gave, as the answer to ``tools/call``."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from agentkit.diagnosis.wording import describe_failure
from agentkit.interop.mcp.wire import RESULT_FIELD, describes_object
from agentkit.messages import ToolResult
from agentkit.tools.definition import ToolDefinition

_logger = logging.getLogger(__name__)


def for_client(result: ToolResult) -> ToolResult:
    """A result as somebody outside may read it: of an exception only its class.

    The model of an agent reads what a tool says about its arguments (``agentkit.agent.checks``);
    a client is somebody else's. What it does not read is in the log and in the episode, under
    the id that it is given.
    """
    failure = result.failure
    if failure is None or failure.kind not in {"tool_error", "unserialisable_result"}:
        return result
    _logger.warning("incident %s: %s: %s", result.call_id, result.name, failure.rule)
    what = f"{failure.cause}; incident" if failure.cause else "Incident"
    hidden = replace(failure, rule=f"{what} {result.call_id} in the server's log")
    return replace(result, text=describe_failure(result.name, hidden), failure=hidden)


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
