"""``openai:MODEL``: OpenAI through its own SDK.

``openai-compatible:MODEL`` reaches the same models without the SDK and at a fraction of its CPU
time; this one is for teams that configure the SDK (organisations, Azure, their own client).
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentkit._loop_bound import LoopBound
from agentkit.errors import MissingExtraError, ModelError, UsageError
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.hosted.sdk_errors import translated_sdk_error
from agentkit.models.openai_compatible import OPENAI_HOST, OPENAI_URL
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint, embedded_error
from agentkit.models.transport.base import cut_short, place
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import parse_object
from agentkit.models.wire.request import MaxTokensField, checked_extra, encode_fields
from agentkit.models.wire.response import decode_completion
from agentkit.models.wire.stream import CompletionAssembler

if TYPE_CHECKING:
    import openai

_KEY_SOURCE = "the variable OPENAI_API_KEY, or the key of the client that was passed"


def openai_model(
    model: str,
    *,
    client: openai.AsyncOpenAI | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
) -> HostedModel:
    """A model of OpenAI, or of a server that the SDK is configured for.

    Args:
        model: The model's name, such as ``gpt-4o-mini``.
        client: A client of the caller's, who closes it; None makes one from the SDK's own
            environment variables.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.

    Raises:
        MissingExtraError: The package openai is not installed.
        UsageError: There is no key.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError(
            f"'openai:{model}'", package="openai", install='pip install "agentkit-evolve[openai]"'
        ) from error
    if client is None and not os.environ.get("OPENAI_API_KEY"):
        raise UsageError(f"no API key for 'openai:{model}': set OPENAI_API_KEY, or pass client=...")
    del openai  # imported here and not in the first request
    return HostedModel(model, OpenAI(model, client), retry=retry, timeout_seconds=timeout_seconds)


class OpenAI:
    """One model through the openai SDK; a ``Provider``."""

    def __init__(self, model: str, client: openai.AsyncOpenAI | None) -> None:
        base_url = os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        url = base_url if client is None else str(client.base_url)
        self._model = model
        self._endpoint = Endpoint(
            place=place(url), model=model, key_source=_KEY_SOURCE, api_key=_key_of(client)
        )
        self._max_tokens_field: MaxTokensField = (
            "max_completion_tokens" if urlsplit(url).hostname == OPENAI_HOST else "max_tokens"
        )
        self._client = client
        self._own: LoopBound[openai.AsyncOpenAI] = LoopBound(
            opened=_open_client,
            closed=lambda own: own.close(),
            is_closed=lambda own: own.is_closed(),
        )

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """See ``Provider.answer``."""
        client = self._client or await self._own.get()
        fields, names = self._fields(request)
        raw = await client.chat.completions.with_raw_response.create(**fields)
        body = await raw.http_response.aread()
        answer = parse_object(body, f"the answer of {self._endpoint.place}")
        error = embedded_error(self._endpoint, answer, raw.headers)
        if error is not None:
            raise error
        return decode_completion(answer, names)

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See ``Provider.events``."""
        client = self._client or await self._own.get()
        fields, names = self._fields(request)
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
        assembler = CompletionAssembler(names)
        async with await client.chat.completions.create(**fields) as chunks:
            async for chunk in chunks:
                text = assembler.add(chunk.to_dict(warnings=False))
                if text:
                    yield TextDelta(text=text)
        if not assembler.is_finished:
            raise cut_short(self._endpoint.place)
        yield assembler.finish()

    def translated(self, error: Exception) -> ModelError | None:
        """See ``Provider.translated``."""
        import openai

        return translated_sdk_error(error, openai, self._endpoint)

    async def close(self) -> None:
        """See ``Provider.close``."""
        await self._own.close()

    def _fields(self, request: ModelRequest) -> tuple[dict[str, Any], WireNames]:
        fields, names = encode_fields(request, self._model, max_tokens_field=self._max_tokens_field)
        if request.settings.extra:
            fields["extra_body"] = checked_extra(request.settings)
        return fields, names


def _open_client() -> openai.AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(max_retries=0, timeout=None)  # both are HostedModel's business


def _key_of(client: openai.AsyncOpenAI | None) -> str | None:
    return os.environ.get("OPENAI_API_KEY") if client is None else client.api_key
