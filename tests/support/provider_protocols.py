"""Providers' protocols as a server speaks them: chat completions, OpenAI's responses, messages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from agentkit.messages import JsonObject, ToolCall
from support.server_steps import ErrorStatus, Reply

MODEL = "faulty"
"""The model's name in answers to requests that name none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """One protocol.

    Attributes:
        path: What requests to it end in.
        whole: The answer as one object, from the reply and the request's body.
        events: The answer as server-sent events, from the same.
        error: The body of an error.
        problem: Why the provider would refuse a request; empty when it would not.
    """

    path: str
    whole: Callable[[Reply, JsonObject], JsonObject]
    events: Callable[[Reply, JsonObject], list[bytes]]
    error: Callable[[ErrorStatus], JsonObject]
    problem: Callable[[JsonObject], str] = lambda _: ""


def event(data: JsonObject, *, named: bool = False) -> bytes:
    """One server-sent event; ``named`` ones carry their type as the event's name."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def words(text: str) -> list[str]:
    """The text in pieces: word by word, spaces kept."""
    parts = text.split(" ")
    return [f"{word} " for word in parts[:-1]] + [word for word in parts[-1:] if word]


def halves(text: str) -> tuple[str, str]:
    """The text cut in the middle."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as a model writes them."""
    return json.dumps(dict(call.arguments)) if call.malformed is None else call.malformed


def answer_text(reply: Reply) -> str:
    """What the reply says, a structured answer included."""
    return reply.text if reply.output is None else json.dumps(dict(reply.output))


def finish_reason(reply: Reply) -> str:
    """Why the model stopped, in the words of chat completions."""
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def model_of(request: JsonObject) -> str:
    """The name that the answer gives the model: the one it was asked by."""
    name = request.get("model")
    return name if isinstance(name, str) and name else MODEL


def tool_names(request: JsonObject) -> Sequence[str]:
    """Names of the tools in a request that have one at their top, in order."""
    tools: Sequence[Any] = request.get("tools") or ()
    return [tool["name"] for tool in tools if isinstance(tool, dict) and tool.get("name")]


def _chat_whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``chat.completion``."""
    message: dict[str, Any] = {"role": "assistant", "content": answer_text(reply) or None}
    if reply.tool_calls:
        message["tool_calls"] = _chat_calls(reply)
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    choice: dict[str, Any] = {"index": 0, "message": message}
    choice["finish_reason"] = finish_reason(reply)
    completion = {**_chat_head(request), "object": "chat.completion", "choices": [choice]}
    if reply.usage is not None:
        completion["usage"] = reply.usage
    if reply.tokens is not None:
        completion["prompt_token_ids"] = list(reply.tokens.prompt)
        choice |= _written(reply, 0, len(reply.tokens.completion))
    return completion


def _chat_events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in chunks: words one by one, arguments in halves, token ids with the deltas."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.reasoning:
        deltas.append({"reasoning_content": reply.reasoning})
    deltas += [{"content": word} for word in words(answer_text(reply))]
    deltas += [{"refusal": word} for word in words(reply.refusal)]
    for index, call in enumerate(_chat_calls(reply)):
        first, rest = halves(call["function"]["arguments"])
        function = {**call["function"], "arguments": first}
        deltas.append({"tool_calls": [{"index": index, **call, "function": function}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": rest}}]})
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason(reply)})
    chunks = _with_tokens(reply, choices)
    if reply.usage is not None:
        chunks.append({"choices": [], "usage": reply.usage})
    head = {**_chat_head(request), "object": "chat.completion.chunk"}
    return [*(event({**head, **chunk}) for chunk in chunks), b"data: [DONE]\n\n"]


def _chat_error(step: ErrorStatus) -> JsonObject:
    """An error in OpenAI's form."""
    return {"error": {"message": step.message, "type": "scripted"}}


def _with_tokens(reply: Reply, choices: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chunks as vLLM sends them: the prompt's ids with the first, written ones spread over all."""
    if reply.tokens is None:
        return [{"choices": [choice]} for choice in choices]
    count, last = len(reply.tokens.completion), len(choices) - 1
    chunks: list[dict[str, Any]] = []
    for index, choice in enumerate(choices):
        begin, end = count * index // last, count * (index + 1) // last
        further = _written(reply, begin, end) if begin < min(end, count) else {}
        chunks.append({"choices": [choice | further]})
    chunks[0]["prompt_token_ids"] = list(reply.tokens.prompt)
    return chunks


def _written(reply: Reply, begin: int, end: int) -> dict[str, Any]:
    """A choice's fields for some of the tokens that were written."""
    assert reply.tokens is not None
    fields: dict[str, Any] = {"token_ids": list(reply.tokens.completion[begin:end])}
    if reply.tokens.logprobs:
        found = [{"token": "", "logprob": one} for one in reply.tokens.logprobs[begin:end]]
        fields["logprobs"] = {"content": found}
    return fields


def _chat_head(request: JsonObject) -> dict[str, Any]:
    return {"id": "c", "created": 0, "model": model_of(request)}


def _chat_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for call in reply.tool_calls
    ]


CHAT = Dialect(path="/chat/completions", whole=_chat_whole, events=_chat_events, error=_chat_error)
"""Chat completions."""


_MESSAGES_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_MESSAGES_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _messages_whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``message``."""
    blocks = _messages_blocks(reply, request)
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
        "stop_reason": _MESSAGES_REASONS.get(reason, reason),
        "stop_sequence": None,
        "usage": _messages_usage(reply),
    }


def _messages_events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in the order of Anthropic's server: blocks started, filled and stopped."""
    answer = _messages_whole(reply, request)
    usage = {**answer["usage"], "output_tokens": 1}
    begun = {**answer, "content": [], "stop_reason": None, "usage": usage}
    sequence: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(answer["content"]):
        sequence += ({**part, "index": index} for part in _block_events(block))
        if index == 0:
            sequence.insert(2, {"type": "ping"})
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    counted = {"output_tokens": answer["usage"]["output_tokens"], "input_tokens": None}
    sequence.append({"type": "message_delta", "delta": delta, "usage": counted})
    sequence.append({"type": "message_stop"})
    return [event(one, named=True) for one in sequence]


def _messages_error(step: ErrorStatus) -> JsonObject:
    """An error in Anthropic's form."""
    kind = _MESSAGES_ERRORS.get(step.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": step.message}, "request_id": "r"}


def _messages_blocks(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "sealed"})
    said = reply.text or reply.refusal
    # litellm asks newer models for a format, and others through a tool as we do
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
        case "tool_use":
            empty = {"input": {}}
            given = block["input"]
            text = given if isinstance(given, str) else json.dumps(dict(given))
            parts = ("", *halves(text))
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield {"type": "content_block_start", "content_block": {**block, **empty}}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}


def _messages_usage(reply: Reply) -> dict[str, int]:
    counts = reply.usage or {}
    cached = counts.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return {
        "input_tokens": counts.get("prompt_tokens", 0) - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": counts.get("completion_tokens", 0),
    }


MESSAGES = Dialect(
    path="/messages", whole=_messages_whole, events=_messages_events, error=_messages_error
)
"""Anthropic's messages."""


_RESPONSES_REASONS = {"length": "max_output_tokens"}
_CALLS = {"function_call": "function_call_output", "tool_search_call": "tool_search_output"}
_SAID = {"reasoning", "message", *_CALLS}


def _responses_whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``response``."""
    reason = finish_reason(reply)
    done = reason in {"stop", "tool_calls"}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed" if done else "incomplete",
        "error": None,
        "incomplete_details": None if done else {"reason": _RESPONSES_REASONS.get(reason, reason)},
        "model": model_of(request),
        "output": _responses_items(reply, request),
        "parallel_tool_calls": True,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "usage": _responses_usage(reply),
    }


def _responses_events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in the order of OpenAI's server: each item added, filled and done."""
    answer = _responses_whole(reply, request)
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


def _responses_error(step: ErrorStatus) -> JsonObject:
    """An error in OpenAI's form."""
    return {"error": {"message": step.message, "type": "scripted", "param": None, "code": None}}


def loaded(request: JsonObject) -> dict[str, str]:
    """The namespaces of the functions that searches of a request loaded, by the functions' names."""
    outputs = [one for one in request["input"] if one.get("type") == "tool_search_output"]
    spaces = [tool for one in outputs for tool in one["tools"] if tool["type"] == "namespace"]
    return {function["name"]: space["name"] for space in spaces for function in space["tools"]}


def _responses_items(reply: Reply, request: JsonObject) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        sealed = {"summary": summary, "encrypted_content": "sealed"}
        items.append({"type": "reasoning", "id": "rs_1", **sealed})
    if answer_text(reply) or reply.refusal:
        part = {"type": "output_text", "text": answer_text(reply), "annotations": []}
        if reply.refusal:
            part = {"type": "refusal", "refusal": reply.refusal}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        phase = {"phase": "commentary"} if reply.reasoning and reply.tool_calls else {}
        items.append({**message, "status": "completed", **phase})
    return items + [_item_of(n, call, request) for n, call in enumerate(reply.tool_calls)]


def _item_of(index: int, call: ToolCall, request: JsonObject) -> dict[str, Any]:
    """A call; that of ``tool_search`` is the protocol's own."""
    shared = {"call_id": call.call_id, "status": "completed"}
    if call.name == "tool_search":
        given: Any = dict(call.arguments) if call.malformed is None else call.malformed
        named = {"type": "tool_search_call", "id": f"tsc_{index}", "execution": "client"}
        return {**named, "arguments": given, **shared}
    space = loaded(request).get(call.name) if isinstance(request.get("input"), list) else None
    named = {"type": "function_call", "id": f"fc_{index}", "name": call.name}
    return {
        **named,
        "arguments": arguments_text(call),
        **shared,
        **({"namespace": space} if space else {}),
    }


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "tool_search_call": {"arguments": {}},
        "reasoning": {"summary": [], "encrypted_content": "half"},
    }
    at: dict[str, Any] = {"item_id": item["id"]}
    begun = {**item, "status": "in_progress"} | empty[item["type"]]
    yield {"type": "response.output_item.added", "item": begun}
    if item["type"] == "message":
        yield from _part_events(at, item["content"][0])
    elif item["type"] == "reasoning":
        for word in words(item["summary"][0]["text"]):
            delta = {"delta": word, "summary_index": 0, **at}
            yield {"type": "response.reasoning_summary_text.delta", **delta}
    elif item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for half in halves(item["arguments"]):
            yield {"type": f"{kind}.delta", **at, "delta": half}
        told = {key: item[key] for key in ("name", "arguments")}
        yield {"type": f"{kind}.done", **at, **told}
    yield {"type": "response.output_item.done", "item": item}


def _part_events(item: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    key = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if key == "refusal" else "response.output_text"
    at = {**item, "content_index": 0}
    scored = at if key == "refusal" else {**at, "logprobs": []}
    yield {"type": "response.content_part.added", **at, "part": {**part, key: ""}}
    for word in words(part[key]):
        yield {"type": f"{kind}.delta", **scored, "delta": word}
    yield {"type": f"{kind}.done", **scored, key: part[key]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _responses_usage(reply: Reply) -> dict[str, Any] | None:
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


def _responses_problem(request: JsonObject) -> str:
    """The rules of OpenAI's server for items and tools, in its words where they are known."""
    if not isinstance(request.get("input"), list):
        return ""
    return next(chain(_tool_problems(request), _item_problems(request)), "")


def _tool_problems(request: JsonObject) -> Iterator[str]:
    tools = request.get("tools", ())
    searches = [tool for tool in tools if tool["type"] == "tool_search"]
    outputs = [one for one in request["input"] if one.get("type") == "tool_search_output"]
    if any(one.get("execution") == "client" and not one.get("description") for one in searches):
        yield "tool_search: a client-executed search needs a description"
    if not searches and (outputs or any(one.get("defer_loading") for one in tools)):
        yield "Deferred tools require tools.tool_search."
    found = [tool for one in outputs for tool in one["tools"]]
    if not all(tool["type"] == "namespace" and len(tool["tools"]) < 10 for tool in found):
        yield "a search loaded a function beside namespaces, or ten functions in one namespace"
    for name, count in Counter(tool["name"] for tool in found).items():
        if count > 1:
            yield f"Duplicate namespace name {name!r}. Namespace names must be unique."


def _item_problems(request: JsonObject) -> Iterator[str]:
    items, spaces = request["input"], loaded(request)
    plain, asked = set(tool_names(request)), {}
    for item, following in zip_longest(items, items[1:], fillvalue={"type": None}):
        kind, name = item.get("type", "message"), item.get("name")
        if kind in _CALLS:
            asked[item["call_id"]] = _CALLS[kind]
        elif kind in _CALLS.values() and asked.pop(item["call_id"], None) != kind:
            yield f"No tool call found for {kind} with call_id {item['call_id']}"
        is_led_on = following.get("type", "message") in _SAID and following.get("role") != "user"
        if kind == "reasoning" and not (item.get("encrypted_content") and is_led_on):
            yield "Item of type 'reasoning' was provided without its required following item"
        if kind == "function_call" and name in {*spaces, *plain}:
            given = item.get("namespace")
            if given != (None if name in plain else spaces[name]):
                yield f"Missing namespace for function_call {name!r}, or {given!r} is not its own"
    if asked:
        yield f"No tool output found for call {next(iter(asked))}"


RESPONSES = Dialect(
    path="/responses",
    whole=_responses_whole,
    events=_responses_events,
    error=_responses_error,
    problem=_responses_problem,
)
"""OpenAI's responses."""
