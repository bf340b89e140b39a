"""``POST /v1/responses``: the same agent in the dialect of OpenAI's Responses API.

A request is translated into a chat completion request, so that both are held to the same rules; an
answer is written as items: messages, calls that are left to the client, and in streams reasoning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.agent.types import RunResult
from agentkit.messages import JsonObject, ToolCall, Usage
from agentkit.server.chat_answer import call_id_on_the_wire, extension, finish_reason
from agentkit.server.chat_request import Asked, Reader, not_honoured, parsed_object
from agentkit.server.middleware import RequestError

RESPONSE_PREFIX = "resp_"
"""Prefix of a response's id before its episode's id."""

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_AS_IN_CHAT = ("model", "stream", "metadata", "user", "tools")
_AS_IN_CHAT_WHEN_NOT_NONE = ("tool_choice", "session_id")
_REFUSED = {
    "background": "answers are not made in the background; leave background out",
    "prompt": "the agent has its own prompt; leave prompt out",
    "conversation": "conversations are named by session_id or previous_response_id; leave "
    "conversation out",
}
_HONOURED = frozenset(
    {"input", "instructions", "previous_response_id", "store", "text"}
    | {*_AS_IN_CHAT, *_AS_IN_CHAT_WHEN_NOT_NONE, *_REFUSED}
)


def read_response_request(reader: Reader, body: bytes, session: str | None) -> Asked:
    """The request in ``body``, held to the same rules as a chat completion request.

    Raises:
        RequestError: It cannot be answered as it is.
    """
    record = parsed_object(body)
    for name, why in _REFUSED.items():
        if record.get(name):
            raise RequestError(message=why, param=name, code="unsupported_parameter")
    follows = _followed(record.get("previous_response_id"))
    chat: dict[str, Any] = {name: record.get(name) for name in _AS_IN_CHAT}
    chat |= {n: record[n] for n in _AS_IN_CHAT_WHEN_NOT_NONE if record.get(n) is not None}
    chat["messages"] = _messages(record)
    chat["response_format"] = _format(record.get("text"))
    asked = reader.read_record(chat, session)
    if follows and not asked.answers and len(asked.messages) > 1:
        message = (
            "the server keeps the conversation of previous_response_id: send the new user "
            "message alone, or leave previous_response_id out"
        )
        raise RequestError(message=message, param="input", code="history_with_session")
    is_kept = record.get("store") is not False
    if follows and not is_kept:
        message = (
            "the conversation of previous_response_id is kept here, with this answer: leave "
            "store out, or send the conversation whole without previous_response_id"
        )
        raise RequestError(message=message, param="store", code="unsupported_parameter")
    begins = is_kept and len(asked.messages) == 1
    ignored = not_honoured(record, _HONOURED)
    return replace(asked, follows=follows, is_followable=begins, not_honoured=ignored)


def _followed(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name.startswith(RESPONSE_PREFIX):
        raise RequestError(
            message=f"previous_response_id must be the id of a response, {RESPONSE_PREFIX}...",
            param="previous_response_id",
        )
    return name.removeprefix(RESPONSE_PREFIX)


def _format(text: object) -> object:
    """``text.format`` as a ``response_format``."""
    asked = text.get("format") if isinstance(text, Mapping) else None
    if not isinstance(asked, Mapping) or asked.get("type") != "json_schema":
        return asked
    return {"type": "json_schema", "json_schema": {k: v for k, v in asked.items() if k != "type"}}


def _messages(record: JsonObject) -> list[dict[str, Any]]:
    """The input as messages of a chat completion."""
    found: list[dict[str, Any]] = []
    if record.get("instructions"):
        found.append({"role": "system", "content": record["instructions"]})
    items = record.get("input")
    if isinstance(items, str):
        return [*found, {"role": "user", "content": items}]
    if not isinstance(items, list):
        raise RequestError(message="input must be a text or a list of items", param="input")
    for at, item in enumerate(items):
        message = _message(item, at)
        if "tool_calls" in message and found and "tool_calls" in found[-1]:
            found[-1]["tool_calls"] += message["tool_calls"]  # calls of one turn are one message
        elif message:
            found.append(message)
    return found


def _message(item: object, at: int) -> dict[str, Any]:
    """One item as a message; empty for reasoning, which is not said again."""
    record = item if isinstance(item, Mapping) else {"type": None}
    match record.get("type", "message"):
        case "message":
            return {"role": record.get("role"), "content": _content(record.get("content"))}
        case "function_call":
            function = {"name": record.get("name"), "arguments": record.get("arguments")}
            calls = [{"id": record.get("call_id"), "function": function}]
            return {"role": "assistant", "tool_calls": calls}
        case "function_call_output":
            output = _content(record.get("output"))
            return {"role": "tool", "tool_call_id": record.get("call_id"), "content": output}
        case "reasoning":
            return {}
        case kind:
            message = f"items of type {str(kind)[:60]!r} are not taken"
            where = f"input[{at}].type"
            raise RequestError(message=message, param=where, code="unsupported_content")


def _content(content: object) -> object:
    """Parts under the names that chat completions have for them."""
    if not isinstance(content, list):
        return content
    return [_part(part) if isinstance(part, Mapping) else part for part in content]


def _part(part: JsonObject) -> JsonObject:
    match part.get("type"):
        case "input_text" | "output_text" | "refusal":
            return {"type": "text", "text": part.get("text", part.get("refusal"))}
        case "input_image":
            return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
        case "input_file":
            return {"type": "file", "file": part}
        case _:
            return part


@dataclass(kw_only=True, slots=True)
class ResponseWriter:
    """Writes one answer; what is streamed and what is whole have the same items.

    Attributes:
        episode_id: Id of the episode, and with a prefix of the response.
        model: The model's name as clients know it.
        asked: The request.
        created: Seconds since 1970.
    """

    episode_id: str
    model: str
    asked: Asked
    created: int = field(default_factory=lambda: int(time.time()))
    _number: int = 2  # after the two events of the opening
    _items: list[dict[str, Any]] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)  # of the last item, while it is open

    def whole(self, result: RunResult, text: str, calls: Sequence[ToolCall]) -> bytes:
        """The answer as one JSON object."""
        self._items += [self._item("message", text)] if text or not calls else []
        self._items += map(self._call, calls)
        return json.dumps(self._ended(result)).encode()

    def opening(self) -> bytes:
        """The first events of a stream; asked for when there is something to say already."""
        response = {"response": {**self._response("in_progress"), "output": []}}
        return _event("response.created", 0, response) + _event("response.in_progress", 1, response)

    def piece(self, text: str) -> bytes:
        """Events with text."""
        return self._said("message", text)

    def thought(self, text: str) -> bytes:
        """Events with reasoning."""
        return self._said("reasoning", text)

    def progress(self, tool: str, text: str) -> bytes:
        """An event of our own that says how far a tool is."""
        return self._event("agentkit.tool_progress", {"tool": tool, "text": text})

    def ending(self, result: RunResult, calls: Sequence[ToolCall]) -> bytes:
        """The last events of a stream."""
        events = [self._close()]
        for call in map(self._call, calls):
            place = {"output_index": len(self._items)}
            self._items.append(call)
            empty = {**call, "arguments": "", "status": "in_progress"}
            events.append(self._event("response.output_item.added", {**place, "item": empty}))
            arguments = {"item_id": call["id"], **place}
            whole = {**arguments, "arguments": call["arguments"], "name": call["name"]}
            delta = {**arguments, "delta": call["arguments"]}
            events.append(self._event("response.function_call_arguments.delta", delta))
            events.append(self._event("response.function_call_arguments.done", whole))
            events.append(self._event("response.output_item.done", {**place, "item": call}))
        ended = self._ended(result)
        events.append(self._event(f"response.{ended['status']}", {"response": ended}))
        return b"".join(events)

    def failing(self, error: RequestError) -> bytes:
        """The last event of a stream that broke."""
        if self._pieces:
            self._items[-1]["content"][0]["text"] = "".join(self._pieces)
        failed = self._response("failed")
        failed["error"] = {"code": error.code, "message": error.message}
        return self._event("response.failed", {"response": failed})

    def _said(self, kind: str, text: str) -> bytes:
        """Events with text of the open item, or of a new one where that is of another kind."""
        begun = b""
        if not self._pieces or self._items[-1]["type"] != kind:
            begun, item = self._close(), self._item(kind, "")
            self._items.append(item)
            place, part = self._place, item["content"][0]
            shown = {**item, "status": "in_progress", "content": []}
            added = {"output_index": place["output_index"], "item": shown}
            begun += self._event("response.output_item.added", added)
            begun += self._event("response.content_part.added", {**place, "part": part})
        self._pieces.append(text)
        return begun + self._text("delta", {"delta": text})

    def _close(self) -> bytes:
        """The last events of the item that is open."""
        if not self._pieces:
            return b""
        item, place = self._items[-1], self._place
        part = item["content"][0]
        part["text"], self._pieces = "".join(self._pieces), []
        done = {"output_index": place["output_index"], "item": item}
        return (
            self._text("done", {"text": part["text"]})
            + self._event("response.content_part.done", {**place, "part": part})
            + self._event("response.output_item.done", done)
        )

    def _text(self, stage: str, fields: Mapping[str, str]) -> bytes:
        """An event with text of the last item."""
        kind = self._items[-1]["content"][0]["type"]
        further: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        return self._event(f"response.{kind}.{stage}", {**self._place, **fields, **further})

    @property
    def _place(self) -> dict[str, Any]:
        """Where the text of the last item belongs."""
        at = len(self._items) - 1
        return {"item_id": self._items[at]["id"], "output_index": at, "content_index": 0}

    def _event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        self._number += 1
        return _event(kind, self._number - 1, fields)

    def _item(self, kind: str, text: str) -> dict[str, Any]:
        name = f"{'msg' if kind == 'message' else 'rs'}_{self.episode_id}_{len(self._items)}"
        item = {"id": name, "type": kind, "status": "completed"}
        if kind == "reasoning":
            return {**item, "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {**item, "role": "assistant", "content": [part]}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {
            "id": f"fc_{self.episode_id}_{call.call_id}",
            "type": "function_call",
            "call_id": call_id_on_the_wire(self.episode_id, call.call_id),
            "name": call.name,
            "arguments": json.dumps(dict(call.arguments)),
            "status": "completed",
        }

    def _ended(self, result: RunResult) -> dict[str, Any]:
        why = _INCOMPLETE.get(finish_reason(result))
        ended = self._response("incomplete" if why else "completed")
        ended["incomplete_details"] = {"reason": why} if why else None
        ended["usage"] = _usage(result.usage)
        ended["agentkit"] = extension(result, self.asked.not_honoured)
        return ended

    def _response(self, status: str) -> dict[str, Any]:
        follows = self.asked.follows
        labels = {
            name.removeprefix("client."): text
            for name, text in self.asked.labels.items()
            if name.startswith("client.")
        }
        return {
            "id": f"{RESPONSE_PREFIX}{self.episode_id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "output": [*self._items],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": labels,
            "parallel_tool_calls": True,
            "previous_response_id": follows and f"{RESPONSE_PREFIX}{follows}",
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "usage": None,
        }


def _event(kind: str, number: int, fields: Mapping[str, Any]) -> bytes:
    body = {"type": kind, "sequence_number": number, **fields}
    return f"event: {kind}\ndata: {json.dumps(body, separators=(',', ':'))}\n\n".encode()


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
