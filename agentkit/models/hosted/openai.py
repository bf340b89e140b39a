"""``openai:MODEL``: OpenAI's chat completions through its own SDK.

``openai-compatible:MODEL`` reaches the same models without the SDK and at a fraction of its CPU
time; this one is for teams that configure the SDK (organisations, Azure, their own client).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentkit.errors import ModelError
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.openai_client import OpenAIClient
from agentkit.models.hosted.sdk_stream import stream_objects
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import embedded_error
from agentkit.models.transport.base import cut_short
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import parse_object
from agentkit.models.wire.request import MaxTokensField, checked_extra, encode_fields
from agentkit.models.wire.response import decode_completion
from agentkit.models.wire.stream import CompletionAssembler

if TYPE_CHECKING:
    import openai


def openai_model(
    model: str,
    *,
    client: openai.AsyncOpenAI | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prompt_cache_key: str | None = None,
) -> HostedModel:
    """A model of OpenAI, or of a server that the SDK is configured for.

    Args:
        model: The model's name, such as ``gpt-4o-mini``.
        client: A client of the caller's, who closes it; None makes one from the SDK's own
            environment variables.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache_key: Requests with one key and one beginning are sent to the same machine, so
            that its prompt cache holds; name what shares instructions and tools, such as the
            agent. None leaves it to OpenAI.

    Raises:
        MissingExtraError: The package openai is not installed.
        UsageError: There is no key.
    """
    provider = OpenAI(model, OpenAIClient(f"openai:{model}", client), prompt_cache_key)
    return HostedModel(model, provider, retry=retry, timeout_seconds=timeout_seconds)


class OpenAI:
    """One model's chat completions through the openai SDK; a ``Provider``."""

    defers_tools = False

    def __init__(self, model: str, client: OpenAIClient, prompt_cache_key: str | None) -> None:
        self._model = model
        self._client = client
        self._further = {"prompt_cache_key": prompt_cache_key} if prompt_cache_key else {}
        self._max_tokens_field: MaxTokensField = (
            "max_completion_tokens" if client.is_openai else "max_tokens"
        )

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """See ``Provider.answer``."""
        client = await self._client.get()
        fields, names = self._fields(request)
        raw = await client.chat.completions.with_raw_response.create(**fields)
        body = await raw.http_response.aread()
        endpoint = self._client.endpoint
        answer = parse_object(body, f"the answer of {endpoint.place}")
        error = embedded_error(endpoint, answer, raw.headers)
        if error is not None:
            raise error
        return decode_completion(answer, names)

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ``Provider.events``."""
        client = await self._client.get()
        fields, names = self._fields(request)
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
        assembler = CompletionAssembler(names)
        opening = client.chat.completions.with_streaming_response.create(**fields)
        async with aclosing(stream_objects(opening, self._client.endpoint)) as chunks:
            async for chunk in chunks:
                text = assembler.add(chunk)
                if text:
                    yield TextDelta(text=text)
        if not assembler.is_finished:
            raise cut_short(self._client.endpoint.place)
        yield assembler.finish()

    def translated(self, error: Exception) -> ModelError | None:
        """See ``Provider.translated``."""
        return self._client.translated(error)

    async def close(self) -> None:
        """See ``Provider.close``."""
        await self._client.close()

    def _fields(self, request: ModelRequest) -> tuple[dict[str, Any], WireNames]:
        fields, names = encode_fields(request, self._model, max_tokens_field=self._max_tokens_field)
        further = {**self._further, **checked_extra(request.settings)}
        if further:
            fields["extra_body"] = further
        return fields, names
