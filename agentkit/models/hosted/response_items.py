"""OpenAI's responses protocol: requests and answers, as pure functions.

Where it differs from chat completions: a conversation is a list of items, of which calls and
their results are some; a schema for the answer is ``text.format``; tools are flat, and told not to
be strict, since strict mode would make every optional parameter required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

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
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import clean, expect, member
from agentkit.models.wire.request import encode_arguments, is_strict, not_json
from agentkit.models.wire.response import decode_call, with_distinct_ids
from agentkit.tools.definition import ToolDefinition

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
