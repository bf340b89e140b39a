"""``anthropic:MODEL``: Anthropic's models, with or without a client of its SDK.

A stream consists of blocks, and a turn may be paused and go on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentkit.errors import ModelResponseError, UsageError
from agentkit.messages import JsonObject
from agentkit.models.anthropic_messages import (
    AnthropicCodec,
    CacheTime,
    CodecOptions,
    ToolSearch,
    read_counts,
    writes_to_schemas,
)
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.models.http_model import Exchange, HttpModel
from agentkit.models.openai_compatible import api_headers
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport import SdkTransport, Transport, open_transport, place
from agentkit.models.wire import (
    MISSING,
    checked_extra,
    encode_body,
    expect,
    member,
    parse_object,
)

if TYPE_CHECKING:
    import anthropic

_URL = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_KEY_SOURCE = "the variable ANTHROPIC_API_KEY, or the key of the client that was passed"
_PATH = "/v1/messages"


def anthropic_model(
    model: str,
    *,
    client: anthropic.AsyncAnthropic | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prompt_cache: CacheTime | None = "5m",
    tool_search: ToolSearch | None = None,
    native_output: bool | None = None,
) -> HttpModel:
    """One of Anthropic's models.

    ``seed`` has no counterpart. Thinking (ask for it in ``ModelSettings.extra``) and what the
    search found go back with the next request, as ``AssistantMessage.provider_items``; thinking
    can not be combined with a forced call, so neither with an answer that is one
    (``native_output``). A turn that Anthropic pauses (``pause_turn``) goes on by itself.

    Args:
        model: The model's name, such as ``claude-sonnet-5-5``.
        client: A client of Anthropic's SDK (of Bedrock or Vertex, too), which the caller closes;
            None needs no SDK and reads ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache: How long Anthropic keeps the tools and instructions of a request with tools,
            which it then reads at a tenth of the price; writing them costs a quarter more once
            (twice the price for an hour). Below about a thousand tokens, more for some
            models, nothing is kept and nothing charged. None sets no marks.
        tool_search: Let Anthropic search among the tools that an agent does not offer at once,
            instead of our own ``search_tools``: by words (``bm25``) or patterns (``regex``).
        native_output: Whether the model writes to an output schema by itself, which Claude does
            since version 4.5; None reads the version off the model's name. Otherwise, and for
            schemas that Anthropic does not take (``native_schema`` says which), a structured
            answer is a forced call of an added tool.

    Raises:
        UsageError: There is no key.
    """
    options = CodecOptions(
        prompt_cache=prompt_cache,
        tool_search=tool_search,
        native_output=writes_to_schemas(model) if native_output is None else native_output,
    )
    headers: dict[str, str] = {}
    if client is None:
        key = os.environ.get("ANTHROPIC_API_KEY")
        if not key:
            raise UsageError(f"no API key for {f'anthropic:{model}'!r}: set ANTHROPIC_API_KEY")
        url = f"{(os.environ.get('ANTHROPIC_BASE_URL') or _URL).rstrip('/')}{_PATH}"
        headers = api_headers(None, {"x-api-key": key, "anthropic-version": _API_VERSION})
        transport: Transport = open_transport("auto", None, url=url)
    else:
        key, url = client.api_key, str(client.base_url)
        transport = SdkTransport(client, _PATH)
    endpoint = Endpoint(place=place(url), model=model, key_source=_KEY_SOURCE, api_key=key)

    def begin(request: ModelRequest, stream: bool) -> Exchange:  # noqa: FBT001 - as a callable
        codec = AnthropicCodec(request, options)
        fields = _fields(model, request, codec) | ({"stream": True} if stream else {})
        return _MessageExchange(codec, fields, endpoint.place)

    return HttpModel(
        model,
        provider_name="anthropic",
        begin=begin,
        url=url,
        endpoint=endpoint,
        headers=headers,
        transport=transport,
        defers_tools=tool_search is not None,
        retry=retry,
        timeout_seconds=timeout_seconds,
    )


def _fields(model: str, request: ModelRequest, codec: AnthropicCodec) -> dict[str, Any]:
    fields = codec.encode(model)
    extra = checked_extra(request.settings)
    ours, theirs = fields.get("output_config"), extra.get("output_config")
    fields |= extra
    if isinstance(ours, dict) and isinstance(theirs, Mapping):  # such as {"effort": "low"}
        fields["output_config"] = {**theirs, **ours}
    return fields


class _MessageExchange:
    """One turn, which may be paused and go on; an ``Exchange``."""

    def __init__(self, codec: AnthropicCodec, fields: JsonObject, place: str) -> None:
        self._codec = codec
        self._fields = fields
        self._turn = _Turn(place)
        self._assembler = MessageAssembler()
        self._message: JsonObject | None = None

    @property
    def is_complete(self) -> bool:
        return self._assembler.is_finished

    def body(self) -> bytes:
        return encode_body(self._turn.request(self._fields))

    def take(self, answer: JsonObject) -> None:
        self._message = answer

    def add(self, event: JsonObject) -> str:
        return self._assembler.add(event)

    def finish(self) -> ModelResponse | None:
        message = self._assembler.finish() if self._message is None else self._message
        self._message, self._assembler = None, MessageAssembler()
        return None if self._turn.add(message) else self._codec.decode(self._turn.message())


MOST_PAUSES = 10
"""A turn that pauses more often is given up."""


class _Turn:
    """The messages of one turn, of which all but the last were paused.

    Args:
        place: Who answers, for messages of errors.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._said: list[JsonObject] = []

    def add(self, message: JsonObject) -> bool:
        """Take a message; returns whether the turn goes on after it.

        A pause beside calls of the caller's tools is none: those are to be run first.

        Raises:
            ModelResponseError: The turn pauses without having said anything, or too often.
        """
        self._said.append(message)
        blocks = member(message, "content", list, "$")
        if message.get("stop_reason") != "pause_turn" or any(map(_is_call, blocks)):
            return False
        if not blocks or len(self._said) > MOST_PAUSES:
            why = "without saying anything" if not blocks else f"{len(self._said)} times"
            raise ModelResponseError(
                f"{self._place} paused its turn {why} (stop_reason 'pause_turn'), so there is no "
                "answer. Its own tools went on for too long: offer fewer of them, or ask for less"
            )
        return True

    def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The request that lets a paused turn go on."""
        content = self._content()
        if not content:
            return dict(fields)
        return {
            **fields,
            "messages": [*fields["messages"], {"role": "assistant", "content": content}],
        }

    def message(self) -> JsonObject:
        """All of the turn as one message; what it cost is the sum."""
        last = self._said[-1]
        if len(self._said) == 1:
            return last
        return {**last, "content": self._content(), "usage": _total(self._said)}

    def _content(self) -> list[Any]:
        return [block for message in self._said for block in message["content"]]


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_use"


def _total(messages: Sequence[JsonObject]) -> dict[str, int]:
    counts = [read_counts(message.get("usage") or {}) for message in messages]
    return {name: sum(one[name] for one in counts) for name in counts[0]}


class MessageAssembler:
    """Puts the events of a stream together into the message object that ``decode`` takes."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self.is_finished = False

    def add(self, event: JsonObject) -> str:
        """Take one event; returns the text that it adds to the answer.

        Raises:
            ModelResponseError: The event is not what the protocol says.
        """
        match event.get("type"):
            case "message_start":
                self._message = dict(member(event, "message", dict, "$"))
            case "content_block_start":
                index = member(event, "index", int, "$")
                self._blocks[index] = dict(member(event, "content_block", dict, "$"))
            case "content_block_delta":
                return self._add_delta(member(event, "index", int, "$"), event)
            case "message_delta":
                self._message |= member(event, "delta", dict, "$")
                self._message["usage"] = {
                    **(self._message.get("usage") or {}),
                    **{k: v for k, v in (event.get("usage") or {}).items() if v is not None},
                }
            case "message_stop":
                self.is_finished = True
        return ""

    def finish(self) -> JsonObject:
        """The whole message object."""
        for index, parts in self._inputs.items():
            block, text = self._blocks[index], "".join(parts)
            if block.get("type") != "tool_use":  # a search of the provider's, which goes back
                block["input"] = parse_object(text or "{}", "the input of a provider's own tool")
            else:
                block["input"] = text
        return {**self._message, "content": [self._blocks[i] for i in sorted(self._blocks)]}

    def _add_delta(self, index: int, event: JsonObject) -> str:
        block = expect(self._blocks.get(index, MISSING), dict, f"$.content[{index}]")
        delta = member(event, "delta", dict, "$")
        if delta.get("type") == "text_delta":
            text: str = member(delta, "text", str, "$.delta")
            block["text"] = block.get("text", "") + text
            return text
        for kind, key in (("thinking_delta", "thinking"), ("signature_delta", "signature")):
            if delta.get("type") == kind:
                block[key] = block.get(key, "") + member(delta, key, str, "$.delta")
        if delta.get("type") == "input_json_delta":
            part = member(delta, "partial_json", str, "$.delta")
            self._inputs.setdefault(index, []).append(part)
        return ""
