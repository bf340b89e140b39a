"""``openai-responses:MODEL``: OpenAI's responses API through its own SDK.

For reasoning models, whose reasoning this API takes back between tool calls, and for its search
among deferred tools. Nothing is stored at OpenAI unless asked for: the conversation is ours.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, assert_never

from agentkit.errors import ModelError
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
)
from agentkit.models.base import FinishReason, ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.openai_client import OpenAIClient
from agentkit.models.hosted.sdk_stream import posted, read_object, stream_objects
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import embedded_error
from agentkit.models.transport.base import cut_short
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import clean, expect, member
from agentkit.models.wire.request import checked_extra, encode_arguments, is_strict, not_json
from agentkit.models.wire.response import decode_call, with_distinct_ids
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import openai


_PATH = "/responses"
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def openai_responses_model(
    model: str,
    *,
    client: openai.AsyncOpenAI | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prompt_cache_key: str | None = None,
    tool_search: bool = False,
    store: bool = False,
) -> HostedModel:
    """A model of OpenAI through its responses API.

    ``seed`` has no counterpart there and is left out. Reasoning and what the search found go back
    with the next request, as ``AssistantMessage.provider_items``.

    Args:
        model: The model's name, such as ``gpt-5-mini``.
        client: A client of the caller's, who closes it; None makes one from the SDK's own
            environment variables.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache_key: As for ``openai_model``.
        tool_search: Let OpenAI search among the tools that an agent does not offer at once,
            instead of our own ``search_tools``; only newer models can.
        store: Whether OpenAI keeps the answers. Without it, reasoning goes back only where it
            came encrypted, as OpenAI sends it for its reasoning models.

    Raises:
        MissingExtraError: The package openai is not installed.
        UsageError: There is no key.
    """
    provider = OpenAIResponses(
        model,
        OpenAIClient(f"openai-responses:{model}", client),
        prompt_cache_key=prompt_cache_key,
        tool_search=tool_search,
        store=store,
    )
    return HostedModel(model, provider, retry=retry, timeout_seconds=timeout_seconds)


class OpenAIResponses:
    """One model's responses through the openai SDK; a ``Provider``."""

    def __init__(
        self,
        model: str,
        client: OpenAIClient,
        *,
        prompt_cache_key: str | None,
        tool_search: bool,
        store: bool,
    ) -> None:
        self._client = client
        self.defers_tools = tool_search
        self._fixed: dict[str, Any] = {"model": model, "store": store}
        if prompt_cache_key:
            self._fixed["prompt_cache_key"] = prompt_cache_key

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """See ``Provider.answer``."""
        client = await self._client.get()
        codec = self._codec(request)
        async with posted(client, _PATH, self._fields(request, codec)) as raw:
            answer = await read_object(raw, self._client.endpoint)
        self._refuse_error(answer)
        return codec.decode(answer)

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ``Provider.events``."""
        client = await self._client.get()
        codec = self._codec(request)
        fields = self._fields(request, codec) | {"stream": True}
        items: list[JsonObject] = []
        answer: JsonObject | None = None
        opening = posted(client, _PATH, fields)
        async with aclosing(stream_objects(opening, self._client.endpoint)) as events:
            async for event in events:
                kind = event.get("type")
                if kind == "response.output_text.delta" and event.get("delta"):
                    yield TextDelta(text=clean(member(event, "delta", str, "$")))
                elif kind == "response.output_item.done":
                    items.append(member(event, "item", dict, "$"))
                elif kind in _ENDS:
                    answer = member(event, "response", dict, "$")
                elif kind == "error":
                    self._refuse_error({"error": event})
        if answer is None:
            raise cut_short(self._client.endpoint.place)
        self._refuse_error(answer)
        yield codec.decode(answer if answer.get("output") else {**answer, "output": items})

    def translated(self, error: Exception) -> ModelError | None:
        """See ``Provider.translated``."""
        return self._client.translated(error)

    async def close(self) -> None:
        """See ``Provider.close``."""
        await self._client.close()

    def _codec(self, request: ModelRequest) -> ResponsesCodec:
        stored = bool(self._fixed["store"])
        return ResponsesCodec(request, defers=self.defers_tools, keeps_reasoning=stored)

    def _fields(self, request: ModelRequest, codec: ResponsesCodec) -> dict[str, Any]:
        return {**self._fixed, **codec.encode(), **checked_extra(request.settings)}

    def _refuse_error(self, answer: JsonObject) -> None:
        """Raise what a response reports that has failed although its status was 200."""
        error = embedded_error(self._client.endpoint, answer, {})
        if error is not None:
            raise error


PROTOCOL = "openai-responses"
"""Marks the provider items that are this protocol's."""

_KEPT = frozenset({"reasoning", "tool_search_call", "tool_search_output", "compaction"})
_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


class ResponsesCodec:
    """Translates one request, and what comes back for it.

    Args:
        request: What is asked.
        defers: Whether its deferred tools are sent, for OpenAI to search.
        keeps_reasoning: Whether OpenAI has stored the answers, so that reasoning without its
            encrypted content can be sent back, too.

    Attributes:
        names: The tools' names on the wire.
    """

    def __init__(
        self, request: ModelRequest, *, defers: bool = False, keeps_reasoning: bool = False
    ) -> None:
        self._request = request
        self._deferred = request.deferred if defers else ()
        self._keeps_reasoning = keeps_reasoning
        self.names = WireNames(tool.name for tool in (*request.tools, *self._deferred))

    def encode(self) -> dict[str, Any]:
        """The fields of the request, without the model.

        Raises:
            UsageError: Something in the request is not JSON data.
        """
        request, settings = self._request, self._request.settings
        try:
            items = [item for message in request.messages for item in self._items(message)]
        except (TypeError, ValueError) as error:
            raise not_json(error) from error
        fields: dict[str, Any] = {
            "input": items,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_output_tokens": settings.max_tokens,
        }
        tools = self._tools()
        if tools:
            fields["tools"] = tools
            fields["tool_choice"] = None if request.tool_choice == "auto" else request.tool_choice
        if request.output_schema is not None:
            fields["text"] = {"format": _text_format(request.output_schema)}
        return {name: value for name, value in fields.items() if value is not None}

    def decode(self, response: JsonObject) -> ModelResponse:
        """The answer that a response object stands for.

        Raises:
            ModelResponseError: A part of it is not what the protocol says.
        """
        texts: list[str] = []
        refusals: list[str] = []
        calls: list[ToolCall] = []
        kept: list[ProviderItem] = []
        for index, item in enumerate(member(response, "output", list, "$")):
            path = f"$.output[{index}]"
            kind = expect(item, dict, path).get("type")
            if kind == "message":
                _read_message(item, path, texts, refusals)
            elif kind == "function_call":
                name = member(item, "name", str, path)
                calls.append(
                    decode_call(item.get("call_id"), name, item.get("arguments"), self.names)
                )
            elif kind in _KEPT:
                kept.append(ProviderItem(protocol=PROTOCOL, data=item))
        refused = not texts and bool(refusals)
        model = response.get("model")
        message = AssistantMessage(
            text=clean("".join(refusals if refused else texts)),
            tool_calls=with_distinct_ids(calls),
            provider_items=tuple(kept),
        )
        return ModelResponse(
            message=message,
            usage=_decode_usage(response.get("usage")),
            finish_reason="content_filter" if refused else _finish_reason(response, bool(calls)),
            model=model if isinstance(model, str) else "",
        )

    def _tools(self) -> list[dict[str, Any]]:
        tools = [_tool(tool, self.names) for tool in self._request.tools]
        if self._deferred:
            tools += [{**_tool(tool, self.names), "defer_loading": True} for tool in self._deferred]
            tools.append({"type": "tool_search"})
        return tools

    def _items(self, message: Message) -> list[dict[str, Any]]:
        match message:
            case SystemMessage() | UserMessage():
                return [{"role": message.role, "content": message.text}]
            case ToolMessage(call_id=call_id, text=text):
                return [{"type": "function_call_output", "call_id": call_id, "output": text}]
            case AssistantMessage(text=text, tool_calls=calls, provider_items=kept):
                items = [dict(item.data) for item in kept if self._goes_back(item)]
                if not text and not calls:  # reasoning is refused without what it led to
                    return []
                if text:
                    items.append({"role": "assistant", "content": text})
                return items + [_call(call, self.names) for call in calls]
            case _:
                assert_never(message)

    def _goes_back(self, item: ProviderItem) -> bool:
        if item.protocol != PROTOCOL:
            return False
        is_sealed = item.data.get("type") != "reasoning" or item.data.get("encrypted_content")
        return self._keeps_reasoning or bool(is_sealed)


def _tool(definition: ToolDefinition, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function",
        "name": names.encode(definition.name),
        "description": definition.text,
        "parameters": definition.parameters_schema,
        "strict": False,
    }


def _call(call: ToolCall, names: WireNames) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.call_id,
        "name": names.encode(call.name),
        "arguments": encode_arguments(call),
    }


def _text_format(schema: JsonObject) -> dict[str, Any]:
    described = {"type": "json_schema", "name": "answer", "schema": schema}
    return {**described, "strict": True} if is_strict(schema) else described


def _read_message(item: JsonObject, path: str, texts: list[str], refusals: list[str]) -> None:
    parts: Sequence[Any] = member(item, "content", list, path)
    for index, part in enumerate(parts):
        at = f"{path}.content[{index}]"
        kind = expect(part, dict, at).get("type")
        if kind == "output_text":
            texts.append(member(part, "text", str, at))
        elif kind == "refusal":
            refusals.append(member(part, "refusal", str, at))


def _finish_reason(response: JsonObject, has_calls: bool) -> FinishReason:  # noqa: FBT001  private
    if response.get("status") == "completed":
        return "tool_calls" if has_calls else "stop"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _INCOMPLETE.get(reason, "unknown") if isinstance(reason, str) else "unknown"


def _decode_usage(usage: Any) -> Usage:
    if usage is None:
        return Usage(requests=1)
    expect(usage, dict, "$.usage")
    path = "$.usage.input_tokens_details"
    details = expect(usage.get("input_tokens_details") or {}, dict, path)
    return Usage(
        requests=1,
        prompt_tokens=expect(usage.get("input_tokens") or 0, int, "$.usage.input_tokens"),
        cached_tokens=expect(details.get("cached_tokens") or 0, int, f"{path}.cached_tokens"),
        completion_tokens=expect(usage.get("output_tokens") or 0, int, "$.usage.output_tokens"),
    )
