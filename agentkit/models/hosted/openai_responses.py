"""``openai-responses:MODEL``: OpenAI's responses API through its own SDK.

For reasoning models, whose reasoning this API takes back between tool calls, and for its search
among deferred tools. Nothing is stored at OpenAI unless asked for: the conversation is ours.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentkit.errors import ModelError
from agentkit.messages import JsonObject
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.openai_client import OpenAIClient
from agentkit.models.hosted.response_items import ResponsesCodec
from agentkit.models.hosted.sdk_stream import posted, read_object, stream_objects
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import embedded_error
from agentkit.models.transport.base import cut_short
from agentkit.models.wire.reading import clean, member
from agentkit.models.wire.request import checked_extra

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
