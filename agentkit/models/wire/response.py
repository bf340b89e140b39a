"""A chat completion, decoded and checked, to ``ModelResponse``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.errors import ModelResponseError
from agentkit.messages import AssistantMessage, JsonObject, TokenIds, ToolCall, Usage
from agentkit.models.base import FinishReason, ModelResponse
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import MISSING, clean, expect, member, parse_json, shown

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}
_DETAILS = "$.usage.prompt_tokens_details"


def decode_completion(completion: JsonObject, names: WireNames) -> ModelResponse:
    """The first choice of a chat completion.

    Args:
        completion: The decoded body.
        names: The names that the request used.

    Raises:
        ModelResponseError: A part of the completion is not what the protocol says.
    """
    choices = member(completion, "choices", list, "$")
    choice = expect(choices[0] if choices else MISSING, dict, "$.choices[0]")
    message = member(choice, "message", dict, "$.choices[0]")
    calls = _decode_calls(message.get("tool_calls") or (), names, "$.choices[0].message")
    text = clean(decode_content(message.get("content"), "$.choices[0].message.content"))
    refusal = expect(message.get("refusal") or "", str, "$.choices[0].message.refusal")
    refused = bool(refusal) and not text
    return build_response(
        text=clean(refusal) if refused else text,
        calls=calls,
        reason="content_filter" if refused else choice.get("finish_reason"),
        usage=completion.get("usage"),
        model=completion.get("model"),
        tokens=decode_tokens(
            completion.get("prompt_token_ids"),
            choice.get("token_ids"),
            decode_logprobs(choice),
        ),
    )


def build_response(
    *,
    text: str,
    calls: tuple[ToolCall, ...],
    reason: Any,
    usage: Any,
    model: Any,
    tokens: TokenIds | None = None,
) -> ModelResponse:
    """A response from checked text and calls and the unchecked rest."""
    finish = _FINISH_REASONS.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    if calls and finish == "stop":  # some servers say so beside tool calls
        finish = "tool_calls"
    return ModelResponse(
        message=AssistantMessage(text=text, tool_calls=calls),
        usage=decode_usage(usage),
        finish_reason=finish,
        model=model if isinstance(model, str) else "",
        tokens=tokens,
    )


def decode_tokens(prompt: Any, completion: Any, logprobs: Sequence[Any]) -> TokenIds | None:
    """Token ids in vLLM's fields, asked for by ``return_token_ids``; None when there are none.

    Raises:
        ModelResponseError: They are not whole numbers.
    """
    if not prompt and not completion:
        return None
    for path, ids in (("$.prompt_token_ids", prompt), ("$.choices[0].token_ids", completion)):
        for one in expect(ids or [], list, path):
            if type(one) is not int:  # a bool is one, too, but no token
                raise ModelResponseError(f"{path} should hold whole numbers, got {shown(one)}")
    return TokenIds(
        prompt=tuple(prompt or ()), completion=tuple(completion or ()), logprobs=tuple(logprobs)
    )


def decode_logprobs(choice: JsonObject) -> list[float]:
    """The log-probability of each of a choice's token ids; empty when they are not given.

    Raises:
        ModelResponseError: One of them is not a number.
    """
    path = "$.choices[0].logprobs"
    if not choice.get("token_ids") or not choice.get("logprobs"):
        return []
    content = expect(choice["logprobs"], dict, path).get("content") or ()
    return [member(expect(one, dict, path), "logprob", (int, float), path) for one in content]


def decode_usage(usage: Any) -> Usage:
    """Token counts; a server that counts nothing is charged nothing but the request.

    Raises:
        ModelResponseError: A count is not a number.
    """
    if usage is None:
        return Usage(requests=1)
    expect(usage, dict, "$.usage")
    details = expect(usage.get("prompt_tokens_details") or {}, dict, _DETAILS)
    cached = details.get("cached_tokens")
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # DeepSeek
    return Usage(
        requests=1,
        prompt_tokens=expect(usage.get("prompt_tokens") or 0, int, "$.usage.prompt_tokens"),
        cached_tokens=expect(cached or 0, int, f"{_DETAILS}.cached_tokens"),
        completion_tokens=expect(
            usage.get("completion_tokens") or 0, int, "$.usage.completion_tokens"
        ),
    )


def decode_call(call_id: Any, name: str, arguments: Any, names: WireNames) -> ToolCall:
    """One tool call; argument text that is not a JSON object is kept as ``malformed``.

    Args:
        call_id: The provider's id; one is made up when it gave none.
        name: The name on the wire.
        arguments: JSON text, or, as some servers send, the object itself.
        names: The names that the request used.
    """
    decoded: Any = {} if arguments is None else arguments
    if isinstance(arguments, str):
        decoded = _decode_arguments(arguments)
    malformed = None
    if not isinstance(decoded, dict):
        malformed = clean(arguments if isinstance(arguments, str) else json.dumps(arguments))
    return ToolCall(
        call_id=call_id if isinstance(call_id, str) and call_id else invented_id(),
        name=names.decode(name),
        arguments={} if malformed is not None else decoded,
        malformed=malformed,
    )


def with_distinct_ids(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: a repeated id would tie two results to one call."""
    calls = tuple(calls)
    if len(calls) < 2:
        return calls
    seen: set[str] = set()
    distinct = []
    for call in calls:
        kept = replace(call, call_id=invented_id()) if call.call_id in seen else call
        seen.add(kept.call_id)
        distinct.append(kept)
    return tuple(distinct)


def invented_id() -> str:
    """An id for a call that came without one."""
    return f"call_{os.urandom(8).hex()}"


def _decode_arguments(text: str) -> Any:
    """The decoded text; the text itself when it is not JSON, or holds half a character."""
    if not text.strip():
        return {}
    try:
        value = parse_json(text)
        if "\\u" in text or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # UnicodeEncodeError is one
        return text
    return value


def _decode_calls(calls: Any, names: WireNames, path: str) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    decoded = []
    for index, call in enumerate(expect(calls, list, f"{path}.tool_calls")):
        at = f"{path}.tool_calls[{index}]"
        function = member(expect(call, dict, at), "function", dict, at)
        name = member(function, "name", str, f"{at}.function")
        decoded.append(decode_call(call.get("id"), name, function.get("arguments"), names))
    return with_distinct_ids(decoded)


def decode_content(content: Any, path: str) -> str:
    """The text of a message's content: a string, a list of parts, or nothing.

    Raises:
        ModelResponseError: It is something else.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = expect(content, (str, list), path)
    return "".join([_part_text(part, f"{path}[{i}]") for i, part in enumerate(parts)])


def _part_text(part: Any, path: str) -> str:
    """The text of one content part; kinds that are not text (thinking, images) give none."""
    match expect(part, dict, path).get("type"):
        case "text":
            return str(member(part, "text", str, path))
        case "refusal":
            return str(member(part, "refusal", str, path))
        case _:
            return ""
