"""Anthropic's messages, as its server answers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentkit.messages import JsonObject
from agentkit.testing.dialects.base import (
    Dialect,
    answer_text,
    event,
    finish_reason,
    halves,
    model_of,
    tool_names,
    words,
)
from agentkit.testing.server_steps import ErrorStatus, Reply

_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``message``."""
    blocks = _blocks(reply, request)
    reason = finish_reason(reply)
    if reply.finish_reason is None and any(block["type"] == "tool_use" for block in blocks):
        reason = "tool_calls"
    if reply.refusal and reply.finish_reason is None:
        reason = "content_filter"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model_of(request),
        "content": blocks,
        "stop_reason": _REASONS.get(reason, reason),
        "stop_sequence": None,
        "usage": _usage(reply),
    }


def events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in the order of Anthropic's server: blocks started, filled and stopped."""
    answer = whole(reply, request)
    usage = {**answer["usage"], "output_tokens": 1}
    begun = {**answer, "content": [], "stop_reason": None, "usage": usage}
    sequence: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(answer["content"]):
        sequence += ({**part, "index": index} for part in _block_events(block))
        if index == 0:
            sequence.insert(2, {"type": "ping"})
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    counted = {"output_tokens": answer["usage"]["output_tokens"]}
    sequence.append({"type": "message_delta", "delta": delta, "usage": counted})
    sequence.append({"type": "message_stop"})
    return [event(one, named=True) for one in sequence]


def error(step: ErrorStatus) -> JsonObject:
    """An error in Anthropic's form."""
    kind = _ERRORS.get(step.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": step.message}, "request_id": "r"}


def _blocks(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "sealed"})
    if reply.found:
        blocks += _search(reply, request)
    said = reply.text or reply.refusal
    asked = request.get("output_config", {}).get("format") or request.get("output_format")
    native = reply.output is not None and bool(asked)
    if said or native:
        blocks.append({"type": "text", "text": answer_text(reply) if native else said})
    if reply.output is not None and not native:
        names = tool_names(request) or ["answer"]
        name = (request.get("tool_choice") or {}).get("name") or names[-1]
        blocks.append({"type": "tool_use", "id": "toolu_a", "name": name, "input": reply.output})
    for call in reply.tool_calls:
        value: Any = dict(call.arguments) if call.malformed is None else call.malformed
        blocks.append({"type": "tool_use", "id": call.call_id, "name": call.name, "input": value})
    return blocks


def _search(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    name = next((n for n in tool_names(request) if n.startswith("tool_search")), "tool_search")
    references = [{"type": "tool_reference", "tool_name": found} for found in reply.found]
    result = {"type": "tool_search_tool_search_result", "tool_references": references}
    query = {"query": " ".join(reply.found)}
    return [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": query},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": result},
    ]


def _block_events(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, Any] = {}
    deltas: list[dict[str, Any]] = []
    match block["type"]:
        case "text":
            empty = {"text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in words(block["text"])]
        case "thinking":
            empty = {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": w} for w in words(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "tool_use" | "server_tool_use":
            empty = {"input": {}}
            given = block["input"]
            text = given if isinstance(given, str) else json.dumps(dict(given))
            parts = ("", *halves(text))
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield {"type": "content_block_start", "content_block": {**block, **empty}}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}


def _usage(reply: Reply) -> dict[str, int]:
    counts = reply.usage or {}
    cached = counts.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return {
        "input_tokens": counts.get("prompt_tokens", 0) - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": counts.get("completion_tokens", 0),
    }


MESSAGES = Dialect(path="/messages", whole=whole, events=events, error=error)
"""Anthropic's messages."""
