"""Chat completions, as OpenAI, vLLM and many others answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentkit.messages import JsonObject
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


def whole(reply: Reply, request: JsonObject) -> JsonObject:
    """The answer as one ``chat.completion``."""
    message: dict[str, Any] = {"role": "assistant", "content": answer_text(reply) or None}
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply)
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    choice: dict[str, Any] = {"index": 0, "message": message}
    choice["finish_reason"] = finish_reason(reply)
    completion = {**_head(request), "object": "chat.completion", "choices": [choice]}
    if reply.usage is not None:
        completion["usage"] = reply.usage
    if reply.tokens is not None:
        completion["prompt_token_ids"] = list(reply.tokens.prompt)
        choice |= _written(reply, 0, len(reply.tokens.completion))
    return completion


def events(reply: Reply, request: JsonObject) -> list[bytes]:
    """The answer in chunks: words one by one, arguments in halves, token ids with the deltas."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.reasoning:
        deltas.append({"reasoning_content": reply.reasoning})
    deltas += [{"content": word} for word in words(answer_text(reply))]
    deltas += [{"refusal": word} for word in words(reply.refusal)]
    for index, call in enumerate(_calls(reply)):
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
    head = {**_head(request), "object": "chat.completion.chunk"}
    return [*(event({**head, **chunk}) for chunk in chunks), b"data: [DONE]\n\n"]


def error(step: ErrorStatus) -> JsonObject:
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


def _head(request: JsonObject) -> dict[str, Any]:
    return {"id": "c", "created": 0, "model": model_of(request)}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for call in reply.tool_calls
    ]


CHAT = Dialect(path="/chat/completions", whole=whole, events=events, error=error)
"""Chat completions."""
