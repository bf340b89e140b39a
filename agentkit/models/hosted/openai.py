"""``openai:MODEL``: OpenAI's chat completions, or a client of the openai SDK.

By name, requests go out as those of ``openai-compatible:`` do, without the SDK: its own work on a
request of 20 messages costs more than everything that we do. A client that somebody has configured
(Azure, a gateway, tokens that are renewed) is used as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING

from agentkit.errors import ModelError, UsageError
from agentkit.messages import JsonObject
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.openai_client import OpenAIClient
from agentkit.models.hosted.sdk_stream import OpenAnswer, posted, read_object, stream_objects
from agentkit.models.openai_compatible import OpenAICompatibleModel
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import embedded_error
from agentkit.models.transport.base import cut_short
from agentkit.models.wire.request import RequestEncoder
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
) -> OpenAICompatibleModel | HostedModel:
    """A model of OpenAI, or of a server that the SDK is configured for.

    Args:
        model: The model's name, such as ``gpt-4o-mini``.
        client: A client of the caller's, who closes it. None needs no SDK and reads its
            environment variables: ``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, ``OPENAI_ORG_ID``,
            ``OPENAI_PROJECT_ID`` and ``OPENAI_CUSTOM_HEADERS``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prompt_cache_key: Requests with one key and one beginning are sent to the same machine, so
            that its prompt cache holds; name what shares instructions and tools, such as the
            agent. None leaves it to OpenAI.

    Raises:
        MissingExtraError: A client is given and the package openai is not installed.
        UsageError: There is no key.
    """
    fields = {"prompt_cache_key": prompt_cache_key} if prompt_cache_key else {}
    if client is None:
        if not os.environ.get("OPENAI_API_KEY"):
            raise UsageError(f"no API key for {f'openai:{model}'!r}: set OPENAI_API_KEY")
        return OpenAICompatibleModel(
            model,
            headers=_environment_headers(),
            retry=retry,
            timeout_seconds=timeout_seconds,
            fields=fields,
        )
    provider = OpenAI(model, OpenAIClient(f"openai:{model}", client), fields)
    return HostedModel(model, provider, retry=retry, timeout_seconds=timeout_seconds)


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


class OpenAI:
    """One model's chat completions through the openai SDK; a ``Provider``."""

    defers_tools = False

    def __init__(self, model: str, client: OpenAIClient, fields: JsonObject) -> None:
        self._client = client
        self._encoder = RequestEncoder(
            model,
            max_tokens_field="max_completion_tokens" if client.is_openai else "max_tokens",
            fields=fields,
        )

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """See ``Provider.answer``."""
        body, names = self._encoder.encode(request, stream=False)
        async with await self._posted(body) as raw:
            answer = await read_object(raw, self._client.endpoint)
        error = embedded_error(self._client.endpoint, answer, raw.headers)
        if error is not None:
            raise error
        return decode_completion(answer, names)

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ``Provider.events``."""
        body, names = self._encoder.encode(request, stream=True)
        assembler = CompletionAssembler(names)
        opening = await self._posted(body)
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

    async def _posted(self, body: bytes) -> AbstractAsyncContextManager[OpenAnswer]:
        import openai

        client = await self._client.get()
        is_plain = type(client) is openai.AsyncOpenAI
        return posted(client, "/chat/completions", body if is_plain else json.loads(body))
