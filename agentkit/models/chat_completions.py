"""The chat-completions protocol: requests as bytes, answers and streams as ``ModelResponse``.

A tool is serialised once in its life and a tuple of tools once as long as it is in use; a request
splices those bytes. Tools come in the order of the request, so that a provider's prompt cache
sees the same prefix each time.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, assert_never

from agentkit.media import Media, pieces
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    TokenIds,
    ToolMessage,
    Usage,
    UserMessage,
    clean,
    is_finite,
)
from agentkit.models.base import (
    Delta,
    FinishReason,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    described_tool,
)
from agentkit.models.wire import (
    ENCODER,
    MAX_CALLS_READ,
    CallDecoder,
    WireNames,
    checked_extra,
    described_output,
    encode_arguments,
    follows_protocol,
    not_json,
    object_of,
    shown,
    text_of,
    with_distinct_ids,
)
from agentkit.tools.definition import ToolDefinition

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
"""OpenAI's reasoning models know only the newer name, most other servers only the older."""

_KEPT_TOOL_BLOCKS = 16
_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}
_AUDIO_FORMS = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}


def encode_message(message: Message, names: WireNames) -> dict[str, Any]:
    """One message in the protocol's form."""
    match message:
        case SystemMessage() | UserMessage():
            if not message.media:
                return {"role": message.role, "content": message.text}
            parts = [encode_part(one) for one in pieces(message.text, message.media)]
            return {"role": message.role, "content": parts}
        case AssistantMessage(text=text, tool_calls=calls):
            if not calls:
                return {"role": "assistant", "content": text}
            encoded = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {
                        "name": names.encode(call.name),
                        "arguments": encode_arguments(call),
                    },
                }
                for call in calls
            ]
            return {"role": "assistant", "content": text or None, "tool_calls": encoded}
        case ToolMessage(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case _:
            assert_never(message)


def encode_part(part: str | Media) -> dict[str, Any]:
    """A text or a medium in the protocol's form."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    match part.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": part.data_url}}
        case "audio":
            form = _AUDIO_FORMS.get(part.media_type) or part.media_type.partition("/")[2]
            return {"type": "input_audio", "input_audio": {"data": part.base64, "format": form}}
        case "file":
            name = part.name or f"file.{part.media_type.rpartition('/')[2]}"
            return {"type": "file", "file": {"filename": name, "file_data": part.data_url}}
        case _:
            assert_never(part.kind)


def encode_messages(messages: Sequence[Message], names: WireNames) -> list[dict[str, Any]]:
    """A conversation in the protocol's form.

    Tool results can only be text there, so their media follow in a user message.
    """
    if not [one for one in messages if one.media]:
        return [encode_message(message, names) for message in messages]
    encoded: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        if shown and not isinstance(message, ToolMessage):
            encoded.append({"role": "user", "content": shown})
            shown = []
        encoded.append(encode_message(message, names))
        if isinstance(message, ToolMessage) and message.media:
            shown += map(encode_part, (f"Result of {message.name}:", *pieces("", message.media)))
    return [*encoded, {"role": "user", "content": shown}] if shown else encoded


def encode_tool(definition: ToolDefinition, wire_name: str, *, examples: int = 0) -> dict[str, Any]:
    """One tool in the protocol's form."""
    return {
        "type": "function",
        "function": {
            "name": wire_name,
            "description": described_tool(definition, examples),
            "parameters": definition.parameters_schema,
        },
    }


def _options(request: ModelRequest, max_tokens_field: MaxTokensField) -> dict[str, Any]:
    """The choices of a request: everything besides its conversation, tools and extra fields."""
    options: dict[str, Any] = {}
    if request.tools and request.tool_choice != "auto":  # "auto" is what every server does anyway
        options["tool_choice"] = request.tool_choice
    if request.output_schema is not None:
        described = described_output(request.output_schema)
        options["response_format"] = {"type": "json_schema", "json_schema": described}
    settings = request.settings
    chosen = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        max_tokens_field: settings.max_tokens,
        "seed": settings.seed,
    }
    return options | {key: value for key, value in chosen.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class _ToolBlock:
    """A tuple of tools as it goes over the wire: ``,"tools":[...]``, or nothing without tools.

    The definitions are kept, so that their identity stays taken.
    """

    tools: tuple[ToolDefinition, ...]
    names: WireNames
    body: bytes


class RequestEncoder:
    """Writes request bodies for one model; remembers what it serialised.

    Args:
        model: The model's name at the provider.
        max_tokens_field: What the server calls ``ModelSettings.max_tokens``.

    Example:
        >>> from agentkit.messages import UserMessage
        >>> encoder = RequestEncoder("m", max_tokens_field="max_tokens")
        >>> encoder.encode(ModelRequest(messages=(UserMessage(text="hi"),)), stream=False)[0]
        b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    """

    def __init__(self, model: str, *, max_tokens_field: MaxTokensField) -> None:
        self._max_tokens_field = max_tokens_field
        self._head = b'{"model":' + ENCODER.encode(model).encode() + b',"messages":'
        self._tools: dict[
            tuple[int, int], tuple[weakref.ref[ToolDefinition], bytes]
        ] = {}  # by identity and how many examples are shown
        self._blocks: dict[tuple[int, int], _ToolBlock] = {}

    def encode(self, request: ModelRequest, *, stream: bool) -> tuple[bytes, WireNames]:
        """The body, and the names needed to read the answer.

        Raises:
            UsageError: Something in the request is not JSON data.
        """
        try:
            block = self._block(request.tools, request.examples)
            messages = encode_messages(request.messages, block.names)
            options = _options(request, self._max_tokens_field)
            if request.settings.extra:
                options |= checked_extra(request.settings)
            if stream:
                options |= {"stream": True, "stream_options": {"include_usage": True}}
            tail = b"," + ENCODER.encode(options).encode()[1:] if options else b"}"
            body = self._head, ENCODER.encode(messages).encode(), block.body, tail
        except (TypeError, ValueError) as error:
            raise not_json(error) from error
        return b"".join(body), block.names

    def _block(self, tools: tuple[ToolDefinition, ...], examples: int) -> _ToolBlock:
        key = id(tools), examples
        block = self._blocks.get(key)
        if block is not None:  # it holds the tuple, so the identity cannot have been reused
            return block
        names = WireNames(definition.name for definition in tools)
        parts = b",".join([self._tool(definition, names, examples) for definition in tools])
        body = b',"tools":[' + parts + b"]" if tools else b""
        self._blocks[key] = block = _ToolBlock(tools=tools, names=names, body=body)
        if len(self._blocks) > _KEPT_TOOL_BLOCKS:
            self._blocks.pop(next(iter(self._blocks)), None)
        return block

    def _tool(self, definition: ToolDefinition, names: WireNames, examples: int) -> bytes:
        """The bytes of one tool; what follows the name is kept as long as the definition lives."""
        key = id(definition), examples
        known = self._tools.get(key)
        if known is not None and known[0]() is definition:
            rest = known[1]
        else:
            function = encode_tool(definition, "", examples=examples)["function"]
            del function["name"]
            rest = ENCODER.encode(function).encode()[1:]
            forget = weakref.ref(definition, partial(self._tools.pop, key))
            self._tools[key] = forget, rest
        return b'{"type":"function","function":{"name":"%s",%s}' % (
            names.encode(definition.name).encode(),
            rest,
        )


@follows_protocol
def decode_completion(completion: JsonObject, names: WireNames) -> ModelResponse:
    """The first choice of a chat completion.

    Args:
        completion: The decoded body, or what a ``CompletionAssembler`` made of a stream.
        names: The names that the request used.

    Raises:
        ModelResponseError: A part of the completion is not what the protocol says.
    """
    choice = completion["choices"][0]
    message = choice["message"]
    calls, decode = [], CallDecoder(names)
    for call in (message.get("tool_calls") or ())[:MAX_CALLS_READ]:
        function = call["function"]
        name = text_of(function["name"])
        calls.append(decode(call.get("id"), name, function.get("arguments")))
    text, refusal = _decode_content(message.get("content")), text_of(message.get("refusal") or "")
    reason, model = choice.get("finish_reason"), completion.get("model")
    finish = _FINISH_REASONS.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    if calls and finish == "stop":  # some servers say so beside tool calls
        finish = "tool_calls"
    return ModelResponse(
        message=AssistantMessage(text=clean(text or refusal), tool_calls=with_distinct_ids(calls)),
        usage=_decode_usage(completion.get("usage")),
        finish_reason="content_filter" if refusal and not text else finish,
        model=model if isinstance(model, str) else "",
        tokens=_decode_tokens(completion, choice),
    )


class CompletionAssembler:
    """Puts the chunks of a stream together into the completion that ``decode_completion`` takes."""

    def __init__(self) -> None:
        self._completion: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._call_at: dict[int, dict[str, Any]] = {}
        self._token_ids: list[Any] = []
        self._logprobs: list[Any] = []

    @property
    def is_finished(self) -> bool:
        """Whether the model said why it stopped; usage may still follow."""
        return "finish_reason" in self._choice

    @follows_protocol
    def add(self, chunk: JsonObject) -> Delta | None:
        """Take one chunk; returns what it adds to the answer, or to the reasoning before it.

        Reasoning is not a part of the protocol: vLLM, DeepSeek and others call it
        ``reasoning_content``, OpenRouter ``reasoning``.

        Raises:
            ModelResponseError: The chunk is not what the protocol says.
        """
        for key in ("usage", "model", "prompt_token_ids"):
            if chunk.get(key):
                self._completion[key] = chunk[key]
        choices = chunk.get("choices")
        if not choices:  # the last chunk carries usage alone
            return None
        choice = choices[0]
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        if choice.get("token_ids"):
            self._token_ids += choice["token_ids"]
            self._logprobs += _logprobs_in(choice)
        delta = choice.get("delta") or {}
        for part in delta.get("tool_calls") or ():
            self._add_call(part)
        self._refusal.append(text_of(delta.get("refusal") or ""))
        text = _decode_content(delta.get("content"))
        self._text.append(text)
        if text := clean(text):
            return TextDelta(text=text)
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        return ReasoningDelta(text=clean(thought)) if isinstance(thought, str) else None

    def finish(self) -> JsonObject:
        """The whole completion."""
        for call in self._calls:
            call["function"]["arguments"] = "".join(call["function"]["arguments"])
        message = {
            "content": "".join(self._text),
            "refusal": "".join(self._refusal),
            "tool_calls": self._calls,
        }
        choice = {
            **self._choice,
            "message": message,
            "token_ids": self._token_ids,
            "logprobs": {"content": self._logprobs},
        }
        return {**self._completion, "choices": [choice]}

    def _add_call(self, part: JsonObject) -> None:
        raw, call = part.get("function") or {}, self._call_for(part)
        function = call["function"]
        call["id"] = call["id"] or text_of(part.get("id") or "")
        if raw.get("name"):
            function.setdefault("name", text_of(raw["name"]))
        if raw.get("arguments"):
            function["arguments"].append(text_of(raw["arguments"]))

    def _call_for(self, part: JsonObject) -> dict[str, Any]:
        """The call that a delta belongs to.

        By its index; but some servers give none, and some give each of several calls index 0 and
        an id of its own, so a new id starts a new call.
        """
        call_id, index = part.get("id"), part.get("index")
        if not isinstance(index, int):
            index = len(self._calls) - (0 if call_id or not self._calls else 1)
        call = self._call_at.get(index)
        if call is None or (call_id and call["id"] and call_id != call["id"]):
            call = self._call_at[index] = {"id": "", "function": {"arguments": []}}
            self._calls.append(call)
        return call


def _decode_tokens(completion: JsonObject, choice: JsonObject) -> TokenIds | None:
    """Token ids in vLLM's fields, asked for by ``return_token_ids``; None when there are none."""
    prompt, written = completion.get("prompt_token_ids"), choice.get("token_ids")
    if not prompt and not written:
        return None
    for one in (*(prompt or ()), *(written or ())):
        if type(one) is not int:  # a bool is one, too, but no token
            raise TypeError(f"{shown(one)} is no id of a token, which is a whole number")
    logprobs = [float(one["logprob"]) for one in (_logprobs_in(choice) if written else ())]
    known = logprobs if is_finite(logprobs) else ()
    return TokenIds(
        prompt=tuple(prompt or ()), completion=tuple(written or ()), logprobs=tuple(known)
    )


def _logprobs_in(choice: JsonObject) -> list[Any]:
    """The log probabilities of a choice's tokens; empty when it has none."""
    found: list[Any] = (choice.get("logprobs") or {}).get("content") or []
    return found


def _decode_usage(usage: Any) -> Usage:
    """Token counts; a server that counts nothing is charged nothing but the request."""
    counts = object_of(usage)
    cached: Any = object_of(counts.get("prompt_tokens_details")).get("cached_tokens")
    if cached is None:
        cached = counts.get("prompt_cache_hit_tokens")  # DeepSeek
    return Usage(
        requests=1,
        prompt_tokens=counts.get("prompt_tokens", 0),
        cached_tokens=cached,
        completion_tokens=counts.get("completion_tokens", 0),
    )


def _decode_content(content: Any) -> str:
    """The text of a message's content: a string, a list of parts, or nothing.

    Parts of kinds that are not text (thinking, images) give none.
    """
    if content is None or isinstance(content, str):
        return content or ""
    shown = (part for part in content if part.get("type") in {"text", "refusal"})
    return "".join(text_of(part[part["type"]]) for part in shown)
