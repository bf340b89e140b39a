"""Anthropic's messages protocol: requests and answers, as pure functions.

Where it differs from chat completions: instructions are a field of their own; results of tools are
blocks of a user message; ``max_tokens`` has to be given. An output schema that the model does not
write to by itself is asked for as a call of a tool that we add, ``answer``, and its arguments
become the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

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
from agentkit.models.wire import (
    MALFORMED_KEY,
    WireNames,
    clean,
    decode_call,
    expect,
    member,
    with_distinct_ids,
)
from agentkit.tools.definition import ToolDefinition

ANSWER_TOOL = "answer"
"""The tool through which a structured answer comes; avoided when a tool of yours has the name."""

_DEFAULT_MAX_TOKENS = 4096
_WRAPPED = "value"
_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)
_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


PROTOCOL = "anthropic-messages"
"""Marks the provider items that are this protocol's."""

CacheTime = Literal["5m", "1h"]
ToolSearch = Literal["bm25", "regex"]

_KEPT = frozenset({"thinking", "redacted_thinking", "server_tool_use", "tool_search_tool_result"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CodecOptions:
    """What a request asks of Anthropic besides an answer.

    Attributes:
        prompt_cache: How long the tools and the instructions of a request with tools are kept for
            the next one; None marks nothing.
        tool_search: How Anthropic searches among deferred tools; None sends none.
        native_output: Whether the model writes to a schema by itself, if the schema is one that
            Anthropic takes; without it, a structured answer is a call of an added tool.
    """

    prompt_cache: CacheTime | None = None
    tool_search: ToolSearch | None = None
    native_output: bool = False


_PLAIN = CodecOptions()


class AnthropicCodec:
    """Translates one request, and what comes back for it.

    Args:
        request: What is asked.
        options: What else is wanted.

    Attributes:
        names: The tools' names on the wire.
    """

    def __init__(self, request: ModelRequest, options: CodecOptions = _PLAIN) -> None:
        self._request = request
        self._options = options
        self._deferred = request.deferred if options.tool_search else ()
        self.names = WireNames(tool.name for tool in (*request.tools, *self._deferred))
        taken = {self.names.encode(tool.name) for tool in (*request.tools, *self._deferred)}
        self._answer_tool = ANSWER_TOOL
        while self._answer_tool in taken:
            self._answer_tool += "_"
        asked = request.output_schema if options.native_output else None
        self._native_schema = None if asked is None else native_schema(asked)

    @property
    def _has_answer_tool(self) -> bool:
        """Whether the answer tool is offered: not where the model has to call a real one."""
        request = self._request
        if request.output_schema is None or self._native_schema is not None:
            return False
        return request.tool_choice != "required"

    def encode(self, model: str) -> dict[str, Any]:
        """The fields of the request.

        ``seed`` has no counterpart and is left out.
        """
        settings = self._request.settings
        tools = self._tools()
        fields: dict[str, Any] = {
            "model": model,
            "max_tokens": settings.max_tokens or _DEFAULT_MAX_TOKENS,
            "messages": encode_messages(self._request.messages, self.names),
            "system": self._system(is_marked=bool(tools["tools"])),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            **tools,
        }
        if self._native_schema is not None:
            described = {"type": "json_schema", "schema": self._native_schema}
            fields["output_config"] = {"format": described}
        return {name: value for name, value in fields.items() if value not in (None, "", [])}

    def decode(self, message: JsonObject) -> ModelResponse:
        """The response that a message object stands for.

        Raises:
            ModelResponseError: A part of it is not what the protocol says.
        """
        texts: list[str] = []
        calls: list[ToolCall] = []
        kept: list[ProviderItem] = []
        answer = None
        for index, block in enumerate(member(message, "content", list, "$")):
            path = f"$.content[{index}]"
            kind = expect(block, dict, path).get("type")
            if kind == "text":
                texts.append(member(block, "text", str, path))
            elif kind == "tool_use":
                name = member(block, "name", str, path)
                call = decode_call(block.get("id"), name, block.get("input"), self.names)
                if self._has_answer_tool and name == self._answer_tool:
                    answer = call
                else:
                    calls.append(call)
            elif kind in _KEPT:
                kept.append(ProviderItem(protocol=PROTOCOL, data=block))
        text, finish = self._ending(message, "".join(texts), calls, answer)
        model = message.get("model")
        return ModelResponse(
            message=AssistantMessage(
                text=clean(text), tool_calls=with_distinct_ids(calls), provider_items=tuple(kept)
            ),
            usage=_decode_usage(message.get("usage")),
            finish_reason=finish,
            model=model if isinstance(model, str) else "",
        )

    def _ending(
        self, message: JsonObject, text: str, calls: Sequence[ToolCall], answer: ToolCall | None
    ) -> tuple[str, FinishReason]:
        """The text, which a structured answer is, too, and why the model stopped."""
        reason = message.get("stop_reason")
        finish = _FINISH_REASONS.get(reason, "unknown") if isinstance(reason, str) else "unknown"
        if answer is not None and not calls:  # beside real calls, the answer is premature
            text, finish = self._answer_text(answer), "stop" if finish == "tool_calls" else finish
        return text, finish

    def _answer_text(self, answer: ToolCall) -> str:
        if answer.malformed is not None:
            return answer.malformed
        value: Any = answer.arguments
        if not _is_object_schema(self._request.output_schema):
            value = value.get(_WRAPPED)
        return json.dumps(value, ensure_ascii=False)

    def _system(self, *, is_marked: bool) -> str | list[dict[str, Any]]:
        texts = [m.text for m in self._request.messages if isinstance(m, SystemMessage)]
        text = "\n\n".join(texts)
        if not is_marked or not text.strip() or self._options.prompt_cache is None:
            return text
        return [{"type": "text", "text": text, "cache_control": self._mark}]

    @property
    def _mark(self) -> dict[str, str]:
        """Ends what is to be cached; five minutes are what Anthropic takes anyway."""
        hour = {"ttl": "1h"} if self._options.prompt_cache == "1h" else {}
        return {"type": "ephemeral", **hour}

    def _tools(self) -> dict[str, Any]:
        request = self._request
        tools = [_tool(definition, self.names) for definition in request.tools]
        choice: dict[str, Any] | None = None
        if (tools or self._deferred) and request.tool_choice != "auto":
            choice = {"type": {"none": "none", "required": "any"}[request.tool_choice]}
        deferred = [{**_tool(tool, self.names), "defer_loading": True} for tool in self._deferred]
        if deferred:
            tools.append(_search_tool(self._options.tool_search))
        if self._has_answer_tool and request.output_schema is not None:
            choice = {"type": "any"}
            if not tools or request.tool_choice == "none":
                choice = {"type": "tool", "name": self._answer_tool}
            tools.append(_answer_tool(self._answer_tool, request.output_schema))
        if tools and self._options.prompt_cache is not None:  # the deferred are no part of a prompt
            tools[-1] = {**tools[-1], "cache_control": self._mark}
        return {"tools": deferred + tools, "tool_choice": choice}


def _tool(definition: ToolDefinition, names: WireNames) -> dict[str, Any]:
    return {
        "name": names.encode(definition.name),
        "description": definition.text,
        "input_schema": definition.parameters_schema,
    }


def _search_tool(kind: ToolSearch | None) -> dict[str, Any]:
    return {"type": f"tool_search_tool_{kind}_20251119", "name": f"tool_search_tool_{kind}"}


def encode_messages(messages: Sequence[Message], names: WireNames) -> list[dict[str, Any]]:
    """The conversation without its system messages; neighbours of one role become one message.

    Raises:
        UsageError: There is no message besides system messages.
    """
    encoded: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, names)
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
    if isinstance(message, ToolMessage):
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    blocks: list[dict[str, Any]] = []
    if isinstance(message, AssistantMessage) and (message.text.strip() or message.tool_calls):
        kept = (item for item in message.provider_items if item.protocol == PROTOCOL)
        blocks += (dict(item.data) for item in kept)
    if message.text.strip():  # text of white space alone is refused
        blocks.append({"type": "text", "text": message.text})
    if isinstance(message, AssistantMessage):
        blocks += [
            {
                "type": "tool_use",
                "id": call.call_id,
                "name": names.encode(call.name),
                "input": call.arguments
                if call.malformed is None
                else {MALFORMED_KEY: call.malformed},
            }
            for call in message.tool_calls
        ]
    return blocks


def _answer_tool(name: str, schema: JsonObject) -> dict[str, Any]:
    if not _is_object_schema(schema):
        schema = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
    return {"name": name, "description": "Give the final answer.", "input_schema": schema}


def _is_object_schema(schema: JsonObject | None) -> bool:
    return schema is not None and schema.get("type") == "object"


def read_counts(usage: Any) -> dict[str, int]:
    """How many tokens of each kind an answer cost; a kind that is not told counts 0.

    Raises:
        ModelResponseError: A count is not a whole number.
    """
    expect(usage, dict, "$.usage")
    return {name: expect(usage.get(name) or 0, int, f"$.usage.{name}") for name in _COUNTS}


def _decode_usage(usage: Any) -> Usage:
    if usage is None:
        return Usage(requests=1)
    counts = read_counts(usage)
    cached = counts["cache_read_input_tokens"]
    return Usage(
        requests=1,
        prompt_tokens=counts["input_tokens"] + cached + counts["cache_creation_input_tokens"],
        cached_tokens=cached,
        completion_tokens=counts["output_tokens"],
    )


_VERSION = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_SINCE = (4, 5)
_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"title", "description", "default", "format", "$ref"}
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def writes_to_schemas(model: str) -> bool:
    """Whether a model writes to a schema itself, by its name; False for a name of another form.

    Example:
        >>> [writes_to_schemas(f"claude-{one}") for one in ("sonnet-4-5", "opus-4-20250514")]
        [True, False]
    """
    found = _VERSION.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _SINCE


def native_schema(schema: JsonObject) -> JsonObject | None:
    """The schema as Anthropic takes it, or None for one that it would refuse.

    Objects that list their properties are closed, which leaves fewer answers, all of them valid.
    """
    definitions = schema.get("$defs", {})
    if schema.get("type") != "object" or not isinstance(definitions, Mapping):
        return None
    root = {name: value for name, value in schema.items() if name != "$defs"}
    parts = {"#": root} | {f"#/$defs/{name}": part for name, part in definitions.items()}
    references: dict[str, set[str]] = {name: set() for name in parts}
    if not all(_fits(part, references[name]) for name, part in parts.items()):
        return None
    if not parts.keys() >= set().union(*references.values()) or _is_cyclic(references):
        return None
    closed: JsonObject = _closed(schema)
    return closed


def _is_cyclic(references: Mapping[str, set[str]]) -> bool:
    try:
        TopologicalSorter(references).prepare()
    except CycleError:
        return True
    return False


def _fits(schema: Any, references: set[str]) -> bool:
    """Whether Anthropic takes the keywords; collects what is referred to."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYWORDS:
        return False
    if "$ref" in schema:
        references.add(str(schema["$ref"]))
    takes = _takes_kind(schema) and schema.get("format", "date") in _FORMATS
    return takes and all(_fits(part, references) for part in _parts(schema))


def _takes_kind(schema: JsonObject) -> bool:
    """Whether the type, its values and, for an object, its properties are written as they must."""
    if not isinstance(schema.get("type", ""), str) or not isinstance(schema.get("anyOf", []), list):
        return False
    values = schema.get("enum", [])
    if not isinstance(values, list) or any(isinstance(one, (Mapping, list)) for one in values):
        return False
    if schema.get("type") != "object":
        return not schema.keys() & {"properties", "required", "additionalProperties"}
    properties = schema.get("properties")
    is_listed = isinstance(properties, Mapping) and bool(properties)
    return is_listed and schema.get("additionalProperties", False) is False


def _parts(schema: JsonObject) -> list[Any]:
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", [])]


def _closed(schema: Any) -> Any:
    """The schema with its objects closed."""
    made = dict(schema)
    for keyword in ("properties", "$defs"):
        if keyword in made:
            made[keyword] = {name: _closed(part) for name, part in made[keyword].items()}
    if "items" in made:
        made["items"] = _closed(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [_closed(part) for part in made["anyOf"]]
    if made.get("type") == "object":
        made["additionalProperties"] = False
    return made
