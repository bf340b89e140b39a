"""``anthropic:MODEL``: Anthropic's models through its own SDK."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentkit._loop_bound import LoopBound
from agentkit.errors import MissingExtraError, ModelError
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.anthropic_messages import (
    AnthropicCodec,
    CacheTime,
    CodecOptions,
    ToolSearch,
)
from agentkit.models.hosted.anthropic_output import writes_to_schemas
from agentkit.models.hosted.anthropic_turn import MessageAssembler, Turn
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.sdk_errors import translated_sdk_error
from agentkit.models.hosted.sdk_stream import posted, read_object, stream_objects
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport.base import cut_short, place
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
