"""``anthropic:MODEL``: Anthropic's models through its own SDK."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentkit._loop_bound import LoopBound
from agentkit.errors import MissingExtraError, ModelError, ModelResponseError
from agentkit.messages import JsonObject
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.anthropic_messages import (
    AnthropicCodec,
    CacheTime,
    CodecOptions,
    ToolSearch,
    read_counts,
)
from agentkit.models.hosted.anthropic_output import writes_to_schemas
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.sdk_errors import translated_sdk_error
from agentkit.models.hosted.sdk_stream import posted, read_object, stream_objects
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport.base import cut_short, place
from agentkit.models.wire.reading import MISSING, expect, member, parse_object
from agentkit.models.wire.request import checked_extra

if TYPE_CHECKING:
    import anthropic


_URL = "https://api.anthropic.com"
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
) -> HostedModel:
    """One of Anthropic's models.

    ``seed`` has no counterpart. Thinking (ask for it in ``ModelSettings.extra``) and what the
    search found go back with the next request, as ``AssistantMessage.provider_items``; thinking
    can not be combined with a forced call, so neither with an answer that is one
    (``native_output``). A turn that Anthropic pauses (``pause_turn``) goes on by itself.

    Args:
        model: The model's name, such as ``claude-sonnet-5-5``.
        client: A client of the caller's, who closes it; None makes one from the SDK's own
            environment variables.
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
        MissingExtraError: The package anthropic is not installed.
    """
    try:
        import anthropic
    except ImportError as error:
        raise MissingExtraError(
            f"'anthropic:{model}'",
            package="anthropic",
            install='pip install "agentkit-evolve[anthropic]"',
        ) from error
    del anthropic  # imported here and not in the first request
    options = CodecOptions(
        prompt_cache=prompt_cache,
        tool_search=tool_search,
        native_output=writes_to_schemas(model) if native_output is None else native_output,
    )
    provider = Anthropic(model, client, options)
    return HostedModel(model, provider, retry=retry, timeout_seconds=timeout_seconds)


class Anthropic:
    """One model through the anthropic SDK; a ``Provider``."""

    def __init__(
        self, model: str, client: anthropic.AsyncAnthropic | None, options: CodecOptions
    ) -> None:
        base_url = os.environ.get("ANTHROPIC_BASE_URL") or _URL
        self._model = model
        self._options = options
        self.defers_tools = options.tool_search is not None
        self._endpoint = Endpoint(
            place=place(base_url if client is None else str(client.base_url)),
            model=model,
            key_source=_KEY_SOURCE,
            api_key=os.environ.get("ANTHROPIC_API_KEY") if client is None else client.api_key,
        )
        self._client = client
        self._own: LoopBound[anthropic.AsyncAnthropic] = LoopBound(
            opened=_open_client,
            closed=lambda own: own.close(),
            is_closed=lambda own: own.is_closed(),
        )

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """See ``Provider.answer``."""
        client = self._client or await self._own.get()
        codec = AnthropicCodec(request, self._options)
        fields = self._fields(request, codec)
        turn, goes_on = Turn(self._endpoint.place), True
        while goes_on:
            async with posted(client, _PATH, turn.request(fields)) as raw:
                answer = await read_object(raw, self._endpoint)
            goes_on = turn.add(answer)
        return codec.decode(turn.message())

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ``Provider.events``."""
        client = self._client or await self._own.get()
        codec = AnthropicCodec(request, self._options)
        fields = self._fields(request, codec) | {"stream": True}
        turn, goes_on, has_spoken = Turn(self._endpoint.place), True, False
        while goes_on:
            assembler = MessageAssembler()
            opening = posted(client, _PATH, turn.request(fields))
            async with aclosing(stream_objects(opening, self._endpoint)) as events:
                async for event in events:
                    text = assembler.add(event)
                    if text:
                        has_spoken = True
                        yield TextDelta(text=text)
            if not assembler.is_finished:
                raise cut_short(self._endpoint.place)
            goes_on = turn.add(assembler.finish())
        response = codec.decode(turn.message())
        if response.message.text and not has_spoken:  # a structured answer, which came as a call
            yield TextDelta(text=response.message.text)
        yield response

    def translated(self, error: Exception) -> ModelError | None:
        """See ``Provider.translated``."""
        import anthropic

        if isinstance(error, TypeError) and "authentication" in str(error):  # the SDK found no key
            name = f"anthropic:{self._model}"
            return ModelError(f"no API key for {name!r}: set ANTHROPIC_API_KEY")
        return translated_sdk_error(error, anthropic, self._endpoint)

    async def close(self) -> None:
        """See ``Provider.close``."""
        await self._own.close()

    def _fields(self, request: ModelRequest, codec: AnthropicCodec) -> dict[str, Any]:
        fields = codec.encode(self._model)
        extra = checked_extra(request.settings)
        ours, theirs = fields.get("output_config"), extra.get("output_config")
        fields |= extra
        if isinstance(ours, dict) and isinstance(theirs, Mapping):  # such as {"effort": "low"}
            fields["output_config"] = {**theirs, **ours}
        return fields


def _open_client() -> anthropic.AsyncAnthropic:
    import anthropic

    return anthropic.AsyncAnthropic(max_retries=0, timeout=None)  # both are HostedModel's business


MOST_PAUSES = 10
"""A turn that pauses more often is given up."""


class Turn:
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
