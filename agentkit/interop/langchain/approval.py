"""Asking a person about a call, by an interrupt of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.agent.types import Approval
from agentkit.tools.tool import Tool


def ask(made: Mapping[str, Any], tool: Tool) -> Approval:
    """Interrupt the graph, or say what was answered to the interrupt.

    The request has the form of LangChain's own ``tool_approval``; the answer may be in that form,
    or a plain yes or no.

    Args:
        made: The call, as LangChain writes it.
        tool: What it calls.
    """
    from langgraph.types import interrupt

    request = {
        "type": "tool_approval",
        "tool_call_id": made["id"],
        "name": made["name"],
        "args": made["args"],
        "description": tool.definition.text,
    }
    answer = interrupt(request)
    if isinstance(answer, Mapping):
        approved = answer.get("type") == "approve"
        return Approval(approved=approved, reason=str(answer.get("message", "")))
    return Approval(approved=answer is True)
