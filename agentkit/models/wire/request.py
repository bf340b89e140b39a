"""``ModelRequest`` to a chat-completions request: as an object, and fast, as bytes.

A tool is serialised once in its life and a tuple of tools once as long as it is in use; a request
splices those bytes. Tools come in the order of the request, so that a provider's prompt cache
sees the same prefix each time.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, assert_never

from agentkit.errors import UsageError
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import ModelRequest, ModelSettings
from agentkit.models.wire.names import WireNames
from agentkit.tools.definition import ToolDefinition

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
"""OpenAI's reasoning models know only the newer name, most other servers only the older."""

MALFORMED_KEY = "malformed_arguments"
"""Under this key a malformed call's text goes back: servers refuse a history that is not JSON."""

_RESERVED = frozenset({"model", "messages", "input", "system", "tools", "stream"})
"""Fields that adapters write themselves, in any of the protocols."""

_KEPT_TOOL_BLOCKS = 16
_STRICT_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"title", "description"}
)


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} {value!r:.80} is not JSON data")


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain)


def encode_message(message: Message, names: WireNames) -> dict[str, Any]:
    """One message in the protocol's form."""
    match message:
        case SystemMessage() | UserMessage():
            return {"role": message.role, "content": message.text}
        case AssistantMessage(text=text, tool_calls=calls):
            if not calls:
                return {"role": "assistant", "content": text}
            encoded = [_encode_call(call, names) for call in calls]
            return {"role": "assistant", "content": text or None, "tool_calls": encoded}
        case ToolMessage(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case _:
            assert_never(message)


def _encode_call(call: ToolCall, names: WireNames) -> dict[str, Any]:
    function = {"name": names.encode(call.name), "arguments": encode_arguments(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def encode_arguments(call: ToolCall) -> str:
    """A call's arguments as JSON text, which they are even when they were not."""
    arguments = call.arguments if call.malformed is None else {MALFORMED_KEY: call.malformed}
    return _ENCODER.encode(arguments)


def encode_tool(definition: ToolDefinition, wire_name: str) -> dict[str, Any]:
    """One tool in the protocol's form."""
    return {
        "type": "function",
        "function": {
            "name": wire_name,
            "description": definition.text,
            "parameters": definition.parameters_schema,
        },
    }


def encode_options(request: ModelRequest, *, max_tokens_field: MaxTokensField) -> dict[str, Any]:
    """The choices of a request: everything besides its conversation, tools and extra fields."""
    options: dict[str, Any] = {}
    if request.tools and request.tool_choice != "auto":  # "auto" is what every server does anyway
        options["tool_choice"] = request.tool_choice
    if request.output_schema is not None:
        options["response_format"] = _response_format(request.output_schema)
    settings = request.settings
    chosen = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        max_tokens_field: settings.max_tokens,
        "seed": settings.seed,
    }
    return options | {key: value for key, value in chosen.items() if value is not None}


def encode_fields(
    request: ModelRequest, model: str, *, max_tokens_field: MaxTokensField
) -> tuple[dict[str, Any], WireNames]:
    """A request as keyword arguments for an SDK, without extra fields; and the names it used.

    Raises:
        UsageError: Something in the request is not JSON data.
    """
    names = WireNames(definition.name for definition in request.tools)
    try:
        messages = [encode_message(message, names) for message in request.messages]
    except (TypeError, ValueError) as error:
        raise not_json(error) from error
    fields: dict[str, Any] = {"model": model, "messages": messages}
    if request.tools:
        fields["tools"] = [encode_tool(tool, names.encode(tool.name)) for tool in request.tools]
    return fields | encode_options(request, max_tokens_field=max_tokens_field), names


def not_json(error: Exception) -> UsageError:
    """The error for a request that can not be written."""
    return UsageError(
        f"the request can not be written as JSON: {error}. Arguments, schemas and "
        "settings may hold only what JSON can: no sets, dates, NaN or infinity"
    )


def checked_extra(settings: ModelSettings) -> JsonObject:
    """The provider's own fields.

    Raises:
        UsageError: One of them is a field that the adapter owns.
    """
    taken = sorted(_RESERVED & settings.extra.keys())
    if taken:
        raise UsageError(
            f"ModelSettings.extra may not set {', '.join(map(repr, taken))}: the adapter writes "
            "these fields from the request; choose the model where the adapter is made"
        )
    return settings.extra


def _response_format(schema: JsonObject) -> dict[str, Any]:
    described: dict[str, Any] = {"name": "answer", "schema": schema}
    if is_strict(schema):
        described["strict"] = True
    return {"type": "json_schema", "json_schema": described}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes the schema: closed objects with nothing optional."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _STRICT_KEYWORDS:
        return False
    parts = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
        parts.extend(properties.values())
    return all(map(is_strict, parts))


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolBlock:
    """A tuple of tools as it goes over the wire.

    Attributes:
        tools: The definitions; kept, so that their identity stays taken.
        names: Their names on the wire.
        body: ``,"tools":[...]``, or nothing without tools.
    """

    tools: tuple[ToolDefinition, ...]
    names: WireNames
    body: bytes


class RequestEncoder:
    """Writes request bodies for one model; remembers what it serialised.

    Args:
        model: The model's name at the provider.
        max_tokens_field: What the server calls ``ModelSettings.max_tokens``.
        fields: Further fields of every request; ``ModelSettings.extra`` wins.

    Example:
        >>> from agentkit.messages import UserMessage
        >>> encoder = RequestEncoder("m", max_tokens_field="max_tokens")
        >>> encoder.encode(ModelRequest(messages=(UserMessage(text="hi"),)), stream=False)[0]
        b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    """

    def __init__(
        self, model: str, *, max_tokens_field: MaxTokensField, fields: JsonObject | None = None
    ) -> None:
        self._max_tokens_field = max_tokens_field
        self._fields = fields or {}
        self._head = b'{"model":' + _ENCODER.encode(model).encode() + b',"messages":'
        self._tools: dict[int, tuple[weakref.ref[ToolDefinition], bytes]] = {}
        self._blocks: dict[int, ToolBlock] = {}

    def encode(self, request: ModelRequest, *, stream: bool) -> tuple[bytes, WireNames]:
        """The body, and the names needed to read the answer.

        Raises:
            UsageError: Something in the request is not JSON data.
        """
        try:
            block = self._block(request.tools)
            messages = [encode_message(message, block.names) for message in request.messages]
            options = encode_options(request, max_tokens_field=self._max_tokens_field)
            options |= self._fields
            if request.settings.extra:
                options |= checked_extra(request.settings)
            if stream:
                options |= {"stream": True, "stream_options": {"include_usage": True}}
            tail = b"," + _ENCODER.encode(options).encode()[1:] if options else b"}"
            body = self._head, _ENCODER.encode(messages).encode(), block.body, tail
        except (TypeError, ValueError) as error:
            raise not_json(error) from error
        return b"".join(body), block.names

    def _block(self, tools: tuple[ToolDefinition, ...]) -> ToolBlock:
        block = self._blocks.get(id(tools))
        if block is not None:  # it holds the tuple, so the identity can not have been reused
            return block
        names = WireNames(definition.name for definition in tools)
        parts = b",".join([self._tool(definition, names) for definition in tools])
        body = b',"tools":[' + parts + b"]" if tools else b""
        self._blocks[id(tools)] = block = ToolBlock(tools=tools, names=names, body=body)
        if len(self._blocks) > _KEPT_TOOL_BLOCKS:
            self._blocks.pop(next(iter(self._blocks)), None)
        return block

    def _tool(self, definition: ToolDefinition, names: WireNames) -> bytes:
        """The bytes of one tool; what follows the name is kept as long as the definition lives."""
        key = id(definition)
        known = self._tools.get(key)
        if known is not None and known[0]() is definition:
            rest = known[1]
        else:
            rest = _tool_after_name(definition)
            forget = weakref.ref(definition, partial(self._tools.pop, key))
            self._tools[key] = forget, rest
        return b'{"type":"function","function":{"name":"%s",%s}' % (
            names.encode(definition.name).encode(),
            rest,
        )


def _tool_after_name(definition: ToolDefinition) -> bytes:
    function = encode_tool(definition, "")["function"]
    del function["name"]
    return _ENCODER.encode(function).encode()[1:]
