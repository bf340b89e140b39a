"""Episodes of tool calls, for tests that are about what happened in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit import Episode
from agentkit.episodes import Turn
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult


def episode_of(
    *calls: tuple[str, Mapping[str, Any], Any], text: str = "", answer: str = "", **fields: Any
) -> Episode:
    """An episode with one call a turn, each ``(name, arguments, outcome)``.

    An outcome is a value, or a ``ToolFailure``; a text that begins with ``!`` stands for what the
    tool's author raised. The text is said with each call, the answer in a turn of its own.
    """
    turns = []
    for at, (name, arguments, outcome) in enumerate(calls):
        call = ToolCall(call_id=f"c{at}", name=name, arguments=dict(arguments))
        message = AssistantMessage(text=text, tool_calls=(call,))
        turns.append(Turn(message=message, results=(_result(call, outcome),)))
    if answer or not turns:
        turns.append(Turn(message=AssistantMessage(text=answer or text)))
    return Episode(**{"episode_id": "e", "request": "", "turns": tuple(turns), **fields})


def _result(call: ToolCall, outcome: Any) -> ToolResult:
    if isinstance(outcome, str) and outcome.startswith("!"):
        outcome = ToolFailure(kind="retry_requested", rule=outcome[1:])
    if isinstance(outcome, ToolFailure):
        return ToolResult(call_id=call.call_id, name=call.name, status="failed", failure=outcome)
    return ToolResult(
        call_id=call.call_id, name=call.name, status="ok", value=outcome, text=str(outcome)
    )
