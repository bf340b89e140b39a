"""``anthropic:MODEL``: Anthropic's models over the messages API, without an SDK.

Where the protocol differs from chat completions: instructions are a field of their own; results of
tools are blocks of a user message; ``max_tokens`` has to be given; a stream consists of blocks. An
output schema is asked for as a call of a tool that we add, ``answer``, whose arguments become the
text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from agentkit.errors import UsageError
from agentkit.media import Media, pieces
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ProviderItem,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    clean,
    count_of,
)
from agentkit.models.base import (
    DOCUMENTS,
    IMAGES,
    Delta,
    FinishReason,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
)
from agentkit.models.http_model import Exchange, HttpModel
from agentkit.models.openai_compatible import api_headers
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport import open_transport, place
from agentkit.models.wire import (
    MAX_CALLS_READ,
    CallDecoder,
    WireNames,
    checked_extra,
    encode_body,
    follows_protocol,
    object_of,
    sent_arguments,
    text_of,
    with_distinct_ids,
)
from agentkit.tools.definition import ToolDefinition

ANSWER_TOOL = "answer"
"""The tool through which a structured answer comes; avoided when a tool of yours has the name."""

PROTOCOL = "anthropic-messages"
"""Marks the provider items that are this protocol's."""

ACCEPTED = IMAGES | DOCUMENTS | {"file-url"}
"""What Anthropic's models accept beside text."""

_URL = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_DEFAULT_MAX_TOKENS = 4096
_WRAPPED = "value"
_CACHE_MARK = {"type": "ephemeral"}  # ends what is to be cached
_KEPT = frozenset({"thinking", "redacted_thinking"})
_SHOWS_EXAMPLES = {"anthropic-beta": "advanced-tool-use-2025-11-20"}

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def anthropic_model(
    model: str,
    *,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    tool_references: bool | None = None,
) -> HttpModel:
    """One of Anthropic's models; reads ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL``.

    ``seed`` has no counterpart. Thinking (ask for it in ``ModelSettings.extra``) goes back with the
    next request, as ``AssistantMessage.provider_items``; beside it no call can be forced, so
    neither ``tool_choice="required"`` nor the call that carries a structured answer is. Tools and
    instructions of a request with tools are marked for Anthropic's prompt cache, which keeps them
    for five minutes and reads them at a tenth of the price; writing them costs a quarter more once.

    Args:
        model: The model's name, such as ``claude-sonnet-5-5``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        tool_references: Whether tools that ``search_tools`` found are given by reference, which
            keeps the prompt cache; None for where Anthropic itself answers.

    Raises:
        UsageError: There is no key.
    """
    is_theirs = not os.environ.get("ANTHROPIC_BASE_URL")
    refers = is_theirs if tool_references is None else tool_references
    key = os.environ.get("ANTHROPIC_API_KEY")
    if not key:
        raise UsageError(f"no API key for {f'anthropic:{model}'!r}: set ANTHROPIC_API_KEY")
    url = f"{(os.environ.get('ANTHROPIC_BASE_URL') or _URL).rstrip('/')}/v1/messages"

    def begin(request: ModelRequest, stream: bool) -> Exchange:  # noqa: FBT001
        codec = AnthropicCodec(request, refers=refers)
        fields = codec.encode(model)
        return Exchange(
            body=encode_body({**fields, "stream": True} if stream else fields),
            decode=codec.decode,
            assembler=MessageAssembler(),
            headers=_SHOWS_EXAMPLES if request.examples else {},
        )

    return HttpModel(
        model,
        provider_name="anthropic",
        begin=begin,
        url=url,
        endpoint=Endpoint(
            place=place(url),
            model=model,
            key_source="the variable ANTHROPIC_API_KEY",
            api_key=key,
        ),
        headers=api_headers(None, {"x-api-key": key, "anthropic-version": _API_VERSION}),
        transport=open_transport("auto", None, url=url),
        media=ACCEPTED,
        retry=retry,
        timeout_seconds=timeout_seconds,
    )


class AnthropicCodec:
    """Translates one request, and what comes back for it.

    Args:
        request: What is asked.
        refers: Whether tools that a search found are given by reference.

    Attributes:
        names: The tools' names on the wire.
    """

    def __init__(self, request: ModelRequest, *, refers: bool = True) -> None:
        self._request = request
        offered = {tool.name for tool in request.tools}
        self._searched = {
            call_id: found
            for call_id, names in (request.searched if refers else {}).items()
            if (found := tuple(name for name in names if name in offered))
        }
        self.names = WireNames(tool.name for tool in request.tools)
        taken = {self.names.encode(tool.name) for tool in request.tools}
        self._answer_tool = ANSWER_TOOL
        while self._answer_tool in taken:
            self._answer_tool += "_"
        # Not where the model has to call a real tool.
        wants_answer = request.output_schema is not None and request.tool_choice != "required"
        self._answer_schema = request.output_schema if wants_answer else None

    def encode(self, model: str) -> dict[str, Any]:
        """The fields of the request.

        Raises:
            UsageError: There is no message besides system messages, or ``extra`` sets a field that
                is ours.
        """
        settings = self._request.settings
        tools = self._tools()
        fields: dict[str, Any] = {
            "model": model,
            "max_tokens": settings.max_tokens or _DEFAULT_MAX_TOKENS,
            "messages": encode_messages(self._request.messages, self.names, self._searched),
            "system": self._system(is_marked=bool(tools)),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "tools": tools,
            "tool_choice": self._tool_choice(),
        }
        sent = {name: value for name, value in fields.items() if value not in (None, "", [])}
        return sent | dict(checked_extra(settings))

    @follows_protocol
    def decode(self, message: JsonObject) -> ModelResponse:
        """The response that a message object stands for.

        Raises:
            ModelResponseError: A part of it is not what the protocol says.
        """
        texts: list[str] = []
        calls: list[ToolCall] = []
        kept: list[ProviderItem] = []
        answer = None
        decode = CallDecoder(self.names)
        for block in message["content"][:MAX_CALLS_READ]:
            kind = block.get("type")
            if kind == "text":
                texts.append(text_of(block["text"]))
            elif kind == "tool_use":
                name = text_of(block["name"])
                call = decode(block.get("id"), name, block.get("input"))
                if self._answer_schema is not None and name == self._answer_tool:
                    answer = call
                else:
                    calls.append(call)
            elif kind in _KEPT:
                kept.append(ProviderItem(protocol=PROTOCOL, data=block))
        text, finish = "".join(texts), _FINISH_REASONS.get(str(message.get("stop_reason")))
        if answer is not None and not calls:  # beside real calls, the answer is premature
            text, finish = self._answer_text(answer), "stop" if finish == "tool_calls" else finish
        model = message.get("model")
        return ModelResponse(
            message=AssistantMessage(
                text=clean(text), tool_calls=with_distinct_ids(calls), provider_items=tuple(kept)
            ),
            usage=_decode_usage(message.get("usage")),
            finish_reason=finish or "unknown",
            model=model if isinstance(model, str) else "",
        )

    def _answer_text(self, answer: ToolCall) -> str:
        if answer.malformed is not None:
            return answer.malformed
        value: Any = answer.arguments
        if not _is_object_schema(self._answer_schema):
            value = value.get(_WRAPPED)
        return json.dumps(value, ensure_ascii=False)

    def _system(self, *, is_marked: bool) -> str | list[dict[str, Any]]:
        texts = [m.text for m in self._request.messages if isinstance(m, SystemMessage)]
        text = "\n\n".join(texts)
        if not is_marked or not text.strip():
            return text
        return [{"type": "text", "text": text, "cache_control": _CACHE_MARK}]

    def _tools(self) -> list[dict[str, Any]]:
        shown = self._request.examples
        definitions = self._request.tools
        found = {name for names in self._searched.values() for name in names}
        tools = [_tool(one, self.names, shown) for one in definitions if one.name not in found]
        if self._answer_schema is not None:
            tools.append(_answer_tool(self._answer_tool, self._answer_schema))
        if tools:
            tools[-1] = {**tools[-1], "cache_control": _CACHE_MARK}
        referred = (_tool(one, self.names, shown) for one in definitions if one.name in found)
        return [*tools, *({**one, "defer_loading": True} for one in referred)]

    def _tool_choice(self) -> dict[str, str] | None:
        request = self._request
        if self._answer_schema is not None:
            if "thinking" in request.settings.extra:  # no call can be forced beside it
                return None
            if not request.tools or request.tool_choice == "none":
                return {"type": "tool", "name": self._answer_tool}
            return {"type": "any"}
        if not request.tools or request.tool_choice == "auto":
            return None
        return {"type": {"none": "none", "required": "any"}[request.tool_choice]}


def _tool(definition: ToolDefinition, names: WireNames, examples: int) -> dict[str, Any]:
    shown = list(definition.shown_examples(examples))
    return {
        "name": names.encode(definition.name),
        "description": definition.text,
        "input_schema": definition.parameters_schema,
    } | ({"input_examples": shown} if shown else {})


def _answer_tool(name: str, schema: JsonObject) -> dict[str, Any]:
    if not _is_object_schema(schema):
        schema = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
    return {"name": name, "description": "Give the final answer.", "input_schema": schema}


def _is_object_schema(schema: JsonObject | None) -> bool:
    return schema is not None and schema.get("type") == "object"


def encode_messages(
    messages: Sequence[Message],
    names: WireNames,
    searched: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The conversation without its system messages; neighbours of one role become one message.

    Args:
        messages: The conversation.
        names: The tools' names on the wire.
        searched: By the id of a call, the tools that are given in its result by reference.

    Raises:
        UsageError: There is no message besides system messages.
    """
    encoded: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        found = searched.get(message.call_id, ()) if isinstance(message, ToolMessage) else ()
        blocks = _blocks(message, names)
        if found:
            references = [names.encode(name) for name in found]
            blocks[0]["content"] = [
                {"type": "tool_reference", "tool_name": name} for name in references
            ]
        if encoded and encoded[-1]["role"] == role:
            encoded[-1]["content"].extend(blocks)
        elif blocks:  # an empty message is refused, and says nothing
            encoded.append({"role": role, "content": blocks})
    if not encoded:
        raise UsageError("Anthropic's models need at least one message with text from the user")
    return encoded


def _blocks(
    message: UserMessage | AssistantMessage | ToolMessage, names: WireNames
) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if isinstance(message, ToolMessage):
        content: Any = message.text
        if message.media:
            content = _shown((message.text, *pieces("", message.media)))
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": content}]
    if message.media:
        return _shown(pieces(message.text, message.media))
    if isinstance(message, AssistantMessage) and (message.text.strip() or message.tool_calls):
        kept = (item.data for item in message.provider_items if item.protocol == PROTOCOL)
        # Earlier versions kept blocks of a search of Anthropic's, which is not offered any more.
        blocks += (dict(data) for data in kept if data.get("type") in _KEPT)
    if message.text.strip():  # text of white space alone is refused
        blocks.append({"type": "text", "text": message.text})
    for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
        used = {"id": call.call_id, "name": names.encode(call.name), "input": sent_arguments(call)}
        blocks.append({"type": "tool_use", **used})
    return blocks


def _shown(parts: Iterable[str | Media]) -> list[dict[str, Any]]:
    """Texts and media as blocks; text of white space alone is refused."""
    return [_block(one) for one in parts if not isinstance(one, str) or one.strip()]


def _block(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": part.base64}
    if part.url:
        source = {"type": "url", "url": part.url}
    if part.kind == "image":
        return {"type": "image", "source": source}
    return {"type": "document", "source": source} | ({"title": part.name} if part.name else {})


def _decode_usage(usage: Any) -> Usage:
    counts = {name: count_of(stated) for name, stated in object_of(usage).items()}
    cached, read = counts.get("cache_read_input_tokens", 0), counts.get("input_tokens", 0)
    return Usage(
        requests=1,
        prompt_tokens=read + cached + counts.get("cache_creation_input_tokens", 0),
        cached_tokens=cached,
        completion_tokens=counts.get("output_tokens", 0),
    )


class MessageAssembler:
    """Puts the events of a stream together into the message object that ``decode`` takes."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self.is_finished = False

    @follows_protocol
    def add(self, event: JsonObject) -> Delta | None:
        """Take one event; returns what it adds to the answer, or to the thinking before it.

        Raises:
            ModelResponseError: The event is not what the protocol says.
        """
        match event.get("type"):
            case "message_start":
                self._message = {**event["message"]}
            case "content_block_start":
                self._blocks[int(event["index"])] = {**event["content_block"]}
            case "content_block_delta":
                return self._add_delta(int(event["index"]), event["delta"])
            case "message_delta":
                self._message |= {**event["delta"]}
                self._message["usage"] = {
                    **object_of(self._message.get("usage")),
                    **{k: v for k, v in object_of(event.get("usage")).items() if v is not None},
                }
            case "message_stop":
                self.is_finished = True
        return None

    def finish(self) -> JsonObject:
        """The whole message object."""
        for index, parts in self._inputs.items():
            self._blocks[index]["input"] = "".join(parts)
        return {**self._message, "content": [self._blocks[i] for i in sorted(self._blocks)]}

    def _add_delta(self, index: int, delta: JsonObject) -> Delta | None:
        block = self._blocks[index]
        match delta.get("type"):
            case "text_delta":
                text = text_of(delta["text"])
                block["text"] = block.get("text", "") + text
                return TextDelta(text=text) if text else None
            case "thinking_delta":
                thought = text_of(delta["thinking"])
                block["thinking"] = block.get("thinking", "") + thought
                return ReasoningDelta(text=thought) if thought else None
            case "signature_delta":
                block["signature"] = text_of(delta["signature"])
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(text_of(delta["partial_json"]))
        return None
