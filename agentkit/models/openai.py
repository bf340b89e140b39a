"""OpenAI's two interfaces: ``openai:MODEL`` and ``openai-responses:MODEL``.

Neither needs OpenAI's SDK: its own work on a request of 20 messages costs more than everything that
we do. A client of it that somebody has configured (Azure, a gateway, renewed tokens) is used as it
is. The responses interface is for reasoning models, whose reasoning it takes back between tool
calls, and for OpenAI's search among deferred tools.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from agentkit.errors import UsageError
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
from agentkit.models.base import FinishReason, ModelRequest, ModelResponse
from agentkit.models.chat_completions import RequestEncoder
from agentkit.models.http_model import Exchange, HttpModel
from agentkit.models.openai_compatible import (
    OPENAI_URL,
    ChatExchange,
    OpenAICompatibleModel,
    api_headers,
    max_tokens_field_at,
)
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport import SdkTransport, open_transport, place
from agentkit.models.wire import (
    WireNames,
    checked_extra,
    clean,
    decode_call,
    described_output,
    encode_arguments,
    encode_body,
    expect,
    member,
    not_json,
    with_distinct_ids,
)
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import openai

_KEY_SOURCE = "the variable OPENAI_API_KEY, or the key of the client that was passed"


def openai_model(
    model: str,
    *,
    client: openai.AsyncOpenAI | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prompt_cache_key: str | None = None,
) -> HttpModel:
    """A model of OpenAI through chat completions.

    Args:
        model: The model's name, such as ``gpt-4o-mini``.
        client: A client of OpenAI's SDK, which the caller closes. None needs no SDK and reads its
            environment variables: ``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, ``OPENAI_ORG_ID``,
            ``OPENAI_PROJECT_ID`` and ``OPENAI_CUSTOM_HEADERS``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache_key: Requests with one key and one beginning are sent to the same machine, so
            that its prompt cache holds; name what shares instructions and tools, such as the
            agent. None leaves it to OpenAI.

    Raises:
        UsageError: There is no key.
    """
    fields = {"prompt_cache_key": prompt_cache_key} if prompt_cache_key else {}
    if client is None:
        _checked_key(f"openai:{model}")
        return OpenAICompatibleModel(
            model,
            headers=_environment_headers(),
            retry=retry,
            timeout_seconds=timeout_seconds,
            fields=fields,
        )
    base_url = str(client.base_url)
    encoder = RequestEncoder(model, max_tokens_field=max_tokens_field_at(base_url), fields=fields)
    return HttpModel(
        model,
        provider_name="openai",
        begin=lambda request, stream: ChatExchange(encoder, request, stream=stream),
        url=base_url,
        endpoint=_endpoint(model, base_url, client.api_key),
        headers={},
        transport=SdkTransport(client, "/chat/completions"),
        retry=retry,
        timeout_seconds=timeout_seconds,
    )


def openai_responses_model(
    model: str,
    *,
    client: openai.AsyncOpenAI | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prompt_cache_key: str | None = None,
    tool_search: bool = False,
    store: bool = False,
) -> HttpModel:
    """A model of OpenAI through its responses API.

    ``seed`` has no counterpart there and is left out. Reasoning and what the search found go back
    with the next request, as ``AssistantMessage.provider_items``.

    Args:
        model: The model's name, such as ``gpt-5-mini``.
        client: As for ``openai_model``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache_key: As for ``openai_model``.
        tool_search: Let OpenAI search among the tools that an agent does not offer at once,
            instead of our own ``search_tools``; only newer models can.
        store: Whether OpenAI keeps the answers. Without it, reasoning goes back only where it
            came encrypted, as OpenAI sends it for its reasoning models.

    Raises:
        UsageError: There is no key.
    """
    fixed: dict[str, Any] = {"model": model, "store": store}
    if prompt_cache_key:
        fixed["prompt_cache_key"] = prompt_cache_key

    def begin(request: ModelRequest, stream: bool) -> Exchange:  # noqa: FBT001 - as a callable
        codec = ResponsesCodec(request, defers=tool_search, keeps_reasoning=store)
        streams = {"stream": True} if stream else {}
        fields = {**fixed, **codec.encode(), **checked_extra(request.settings), **streams}
        return _ResponsesExchange(codec, encode_body(fields))

    if client is None:
        key = _checked_key(f"openai-responses:{model}")
        url = f"{(os.environ.get('OPENAI_BASE_URL') or OPENAI_URL).rstrip('/')}/responses"
        headers = api_headers(key, _environment_headers())
        transport = open_transport("auto", None, url=url)
    else:
        key, url, headers = client.api_key, str(client.base_url), {}
        transport = SdkTransport(client, "/responses")
    return HttpModel(
        model,
        provider_name="openai",
        begin=begin,
        url=url,
        endpoint=_endpoint(model, url, key),
        headers=headers,
        transport=transport,
        defers_tools=tool_search,
        retry=retry,
        timeout_seconds=timeout_seconds,
    )


def _checked_key(name: str) -> str:
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise UsageError(f"no API key for {name!r}: set OPENAI_API_KEY")
    return key


def _endpoint(model: str, url: str, api_key: str | None) -> Endpoint:
    return Endpoint(place=place(url), model=model, key_source=_KEY_SOURCE, api_key=api_key or None)


def _environment_headers() -> dict[str, str]:
    """The headers that the SDK takes from the environment."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    custom = (line.partition(":") for line in lines if ":" in line)
    chosen = {
        "OpenAI-Organization": os.environ.get("OPENAI_ORG_ID"),
        "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID"),
    }
    return {name: value for name, value in chosen.items() if value} | {
        name.strip(): value.strip() for name, _, value in custom
    }


class _ResponsesExchange:
    """One response; an ``Exchange``."""

    def __init__(self, codec: ResponsesCodec, body: bytes) -> None:
        self._codec = codec
        self._body = body
        self._items: list[JsonObject] = []
        self._answer: JsonObject | None = None

    @property
    def is_complete(self) -> bool:
        return self._answer is not None

    def body(self) -> bytes:
        return self._body

    def take(self, answer: JsonObject) -> None:
        self._answer = answer

    def add(self, event: JsonObject) -> str:
        kind = event.get("type")
        if kind == "response.output_text.delta" and event.get("delta"):
            return clean(member(event, "delta", str, "$"))
        if kind == "response.output_item.done":
            self._items.append(member(event, "item", dict, "$"))
        elif kind in _ENDS:
            answer: JsonObject = member(event, "response", dict, "$")
            self._answer = answer if answer.get("output") else {**answer, "output": self._items}
        return ""

    def finish(self) -> ModelResponse:
        return self._codec.decode(self._answer or {})


_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})

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
            described = described_output(request.output_schema)
            fields["text"] = {"format": {"type": "json_schema", **described}}
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
