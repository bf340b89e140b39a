"""OpenAI's responses, as its server answers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentkit.messages import JsonObject, ToolCall
from agentkit.testing.dialects.base import (
    Dialect,
    answer_text,
    arguments_text,
    event,
    finish_reason,
    halves,
    model_of,
    words,
)
from agentkit.testing.server_steps import ErrorStatus, Reply

_REASONS = {"length": "max_output_tokens"}
_COMPLETED = frozenset({"stop", "tool_calls"})


def whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``response``."""
    reason = finish_reason(reply)
    done = reason in _COMPLETED
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed" if done else "incomplete",
        "error": None,
        "incomplete_details": None if done else {"reason": _REASONS.get(reason, reason)},
        "model": model_of(request),
        "output": _items(reply, request),
        "parallel_tool_calls": True,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "usage": _usage(reply),
    }


def events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in the order of OpenAI's server: each item added, filled and done."""
    answer = whole(reply, request)
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    ended = "response.completed" if answer["status"] == "completed" else "response.incomplete"
    sequence: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(answer["output"]):
        sequence += ({**part, "output_index": index} for part in _item_events(item))
    sequence.append({"type": ended, "response": answer})
    return [event({**one, "sequence_number": n}, named=True) for n, one in enumerate(sequence)]


def error(step: ErrorStatus) -> JsonObject:
    """An error in OpenAI's form."""
    return {"error": {"message": step.message, "type": "scripted", "param": None, "code": None}}


def _items(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        items.append(_reasoning(reply.reasoning))
    if reply.found:
        items += _search(reply, request)
    if answer_text(reply) or reply.refusal:
        items.append(_message(reply))
    return items + [_call(index, call) for index, call in enumerate(reply.tool_calls)]


def _reasoning(text: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": "sealed",
    }


def _search(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    found = [tool for tool in request.get("tools", ()) if tool.get("name") in reply.found]
    shared = {"call_id": None, "execution": "server", "status": "completed"}
    arguments = {"paths": list(reply.found)}
    return [
        {"type": "tool_search_call", "id": "tsc_1", "arguments": arguments, **shared},
        {"type": "tool_search_output", "id": "tso_1", "tools": found, **shared},
    ]


def _message(reply: Reply) -> dict[str, Any]:
    part = {"type": "output_text", "text": answer_text(reply), "annotations": []}
    if reply.refusal:
        part = {"type": "refusal", "refusal": reply.refusal}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _call(index: int, call: ToolCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{index}",
        "call_id": call.call_id,
        "name": call.name,
        "arguments": arguments_text(call),
        "status": "completed",
    }


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    begun = {**item, "status": "in_progress"} | empty.get(item["type"], {})
    yield {"type": "response.output_item.added", "item": begun}
    if item["type"] == "message":
        yield from _part_events(item["id"], item["content"][0])
    elif item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for half in halves(item["arguments"]):
            yield {"type": f"{kind}.delta", "item_id": item["id"], "delta": half}
        told = {key: item[key] for key in ("name", "arguments")}
        yield {"type": f"{kind}.done", "item_id": item["id"], **told}
    yield {"type": "response.output_item.done", "item": item}


def _part_events(item_id: str, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    key = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if key == "refusal" else "response.output_text"
    at = {"item_id": item_id, "content_index": 0}
    scored = at if key == "refusal" else {**at, "logprobs": []}
    yield {"type": "response.content_part.added", **at, "part": {**part, key: ""}}
    for word in words(part[key]):
        yield {"type": f"{kind}.delta", **scored, "delta": word}
    yield {"type": f"{kind}.done", **scored, key: part[key]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _usage(reply: Reply) -> dict[str, Any] | None:
    if reply.usage is None:
        return None
    prompt, written = reply.usage["prompt_tokens"], reply.usage["completion_tokens"]
    cached = reply.usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + written,
    }


RESPONSES = Dialect(path="/responses", whole=whole, events=events, error=error)
"""OpenAI's responses."""
