"""Taking in what a model answered: unique call ids, and arguments of sane depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.episodes import Turn
from agentkit.messages import AssistantMessage, ToolCall

MAX_ARGUMENT_DEPTH = 64
"""Deeper nesting is no argument that a tool asks for; it would only exhaust the stack of whoever
walks it."""


def taken_in(message: AssistantMessage, turns: Sequence[Turn]) -> AssistantMessage:
    """The answer as the run goes on with it.

    Some servers number calls anew in each answer, but ids must be unique within a run. Arguments
    nested deeper than ``MAX_ARGUMENT_DEPTH`` become malformed.
    """
    if not message.tool_calls:
        return message
    taken = {call.call_id for turn in turns for call in turn.message.tool_calls}
    return replace(
        message, tool_calls=tuple(_renamed(_bounded(call), taken) for call in message.tool_calls)
    )


def _renamed(call: ToolCall, taken: set[str]) -> ToolCall:
    call_id, suffix = call.call_id, 2
    while call_id in taken:
        call_id, suffix = f"{call.call_id}-{suffix}", suffix + 1
    taken.add(call_id)
    return call if call_id == call.call_id else replace(call, call_id=call_id)


def _bounded(call: ToolCall) -> ToolCall:
    if not _is_deeper(call.arguments, MAX_ARGUMENT_DEPTH):
        return call
    text = f"arguments nested more than {MAX_ARGUMENT_DEPTH} levels deep"
    return replace(call, arguments={}, malformed=text)


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, Mapping):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())
    if isinstance(value, list | tuple):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)
    return False
