"""``OpenAICompatibleModel``: any server that speaks OpenAI's chat completions.

OpenAI itself, llama.cpp, vLLM, Ollama, LM Studio, and the compatible endpoints of most providers.
No SDK: the request is spliced from bytes that are serialised once (``wire.request``), sent over
pooled connections (``transport``) and the answer is checked while it is read (``wire.response``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from agentkit._version import __version__
from agentkit.errors import ModelConnectionError, ModelTimeoutError, UsageError
from agentkit.messages import JsonObject, Usage
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.patience import Patience
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy, stream_with_retries, with_retries
from agentkit.models.status import Endpoint, embedded_error, status_error
from agentkit.models.transport.base import HttpStream, Transport, cut_short, place
from agentkit.models.transport.opening import TransportName, open_transport
from agentkit.models.wire.events import EventParser
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import check_size, parse_object
from agentkit.models.wire.request import MaxTokensField, RequestEncoder
from agentkit.models.wire.response import decode_completion
from agentkit.models.wire.stream import CompletionAssembler

if TYPE_CHECKING:
    import aiohttp
    import httpx


OPENAI_URL = "https://api.openai.com/v1"
OPENAI_HOST = "api.openai.com"
"""Where OpenAI itself is; some rules hold for it alone."""
_DRAIN_SECONDS = 0.2


class OpenAICompatibleModel:
    """A model behind a chat-completions endpoint.

    Connections are kept and reused, one pool for each event loop; a pool is closed with its loop,
    or by ``close()``. May be shared by any number of concurrent runs.

    Args:
        model: The model's name at the server.
        base_url: What ``/chat/completions`` is added to, such as ``http://localhost:8080/v1``;
            None takes ``OPENAI_BASE_URL``, then OpenAI's own.
        api_key: Sent as a bearer token; None takes ``OPENAI_API_KEY``, and sends none when that
            is not set (fine for a server of your own). An empty string sends none.
        client: An ``httpx.AsyncClient`` or ``aiohttp.ClientSession`` to send through; the caller
            closes it.
        transport: ``auto`` takes aiohttp when it is installed (the ``fast`` extra; about a third
            of the CPU time per request) and httpx otherwise. Or a ``Transport`` of your own.
        fields: Further fields of every request, such as ``{"prompt_cache_key": ...}``;
            ``ModelSettings.extra`` wins.
        headers: Further headers, such as ``{"api-key": ...}`` for Azure.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer, and for the next piece of a streamed one;
            ``ModelSettings.timeout_seconds`` wins.
        prices: To report what an answer cost; without them ``Usage.cost_usd`` stays None.
        max_tokens_field: What the server calls ``ModelSettings.max_tokens``; None takes
            ``max_completion_tokens`` for OpenAI itself and ``max_tokens`` for everybody else.

    Raises:
        UsageError: OpenAI itself is meant and there is no key; or the URL is not one.
        MissingExtraError: aiohttp was asked for and is not installed.

    Example:
        >>> model = OpenAICompatibleModel("qwen3", base_url="http://localhost:8080/v1")
        >>> model
        OpenAICompatibleModel('qwen3', base_url='http://localhost:8080/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: httpx.AsyncClient | aiohttp.ClientSession | None = None,
        transport: TransportName | Transport = "auto",
        fields: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        timeout_seconds: float = 60.0,
        prices: Prices | None = None,
        max_tokens_field: MaxTokensField | None = None,
    ) -> None:
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self._model = model
        self._url, is_openai = _endpoint_url(base_url)
        self._endpoint = _endpoint(model, self._url, api_key, is_openai=is_openai)
        self._headers = _headers(self._endpoint.api_key, headers or {})
        self._retry = retry
        self._timeout = timeout_seconds
        self._prices = prices
        self._encoder = RequestEncoder(
            model,
            max_tokens_field=max_tokens_field
            or ("max_completion_tokens" if is_openai else "max_tokens"),
            fields=fields,
        )
        self._transport = open_transport(transport, client, url=self._url)

    def __repr__(self) -> str:
        base = self._endpoint.place.removesuffix("/chat/completions")
        return f"{type(self).__name__}({self._model!r}, base_url={base!r})"

    @property
    def name(self) -> str:
        """The model's name at the server."""
        return self._model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running event loop; a later request opens new ones."""
        await self._transport.close()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, trying again as ``retry`` says.

        Raises:
            ModelError: The model could not answer; a subclass says why.
            UsageError: Something in the request is not JSON data.
        """
        body, names = self._encoder.encode(request, stream=False)
        seconds = self._seconds(request)
        return await with_retries(self._retry, lambda: self._complete_once(body, names, seconds))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it arrives, then the whole response exactly once.

        A request is sent again only as long as nothing was yielded.

        Raises:
            ModelError: As ``complete``; half a stream is a ``ModelConnectionError``.
            UsageError: Something in the request is not JSON data.
        """
        body, names = self._encoder.encode(request, stream=True)
        seconds = self._seconds(request)
        attempts = stream_with_retries(self._retry, lambda: self._stream_once(body, names, seconds))
        async with aclosing(attempts) as events:
            async for event in events:
                yield event

    async def _complete_once(self, body: bytes, names: WireNames, seconds: float) -> ModelResponse:
        with self._patience(seconds) as patience:
            response = await patience.wait(self._transport.post(self._url, self._headers, body))
        if response.status != 200:
            raise status_error(
                self._endpoint,
                status=response.status,
                headers=response.headers,
                body=response.body,
            )
        return self._decoded(response.body, response.headers, names)

    def _decoded(self, body: bytes, headers: Mapping[str, str], names: WireNames) -> ModelResponse:
        answer = parse_object(body, f"the answer of {self._endpoint.place}")
        error = embedded_error(self._endpoint, answer, headers)
        if error is not None:
            raise error
        return self._priced(decode_completion(answer, names))

    async def _stream_once(
        self, body: bytes, names: WireNames, seconds: float
    ) -> AsyncGenerator[ModelEvent, None]:
        async with AsyncExitStack() as stack:
            patience = stack.enter_context(self._patience(seconds))
            opening = self._transport.stream(self._url, self._headers, body)
            answer = await patience.wait(stack.enter_async_context(opening))
            if answer.status != 200 or _is_json(answer.headers):  # an error, or it does not stream
                response = await self._whole(answer, names, patience)
                if response.message.text:
                    yield TextDelta(text=response.message.text)
            else:
                assembler = CompletionAssembler(names)
                async with aclosing(self._texts(answer, assembler, patience)) as texts:
                    async for text in texts:
                        yield TextDelta(text=text)
                response = self._priced(assembler.finish())
            yield response

    async def _texts(
        self, answer: HttpStream, assembler: CompletionAssembler, patience: Patience
    ) -> AsyncGenerator[str, None]:
        """The text of a stream, piece by piece; its end is checked."""
        parser = EventParser()
        while chunk := await patience.wait(answer.read()):
            for event in parser.feed(chunk):
                if event.data == "[DONE]":
                    await self._drain(answer)
                    return
                text = self._add(event.data, answer, assembler)
                if text:
                    yield text
        if not assembler.is_finished:
            raise cut_short(self._endpoint.place)

    def _add(self, data: str, answer: HttpStream, assembler: CompletionAssembler) -> str:
        chunk = parse_object(data, f"an event in the stream of {self._endpoint.place}")
        error = embedded_error(self._endpoint, chunk, answer.headers)
        if error is not None:
            raise error
        return assembler.add(chunk)

    async def _drain(self, answer: HttpStream) -> None:
        """Read to the end, so that the connection can be used again.

        The answer is complete by then: a server that does not end its body costs a connection,
        and nothing that the caller needs to know.
        """
        with suppress(ModelConnectionError, TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await answer.read():
                    pass

    async def _whole(
        self, answer: HttpStream, names: WireNames, patience: Patience
    ) -> ModelResponse:
        parts, size = [], 0
        while chunk := await patience.wait(answer.read()):
            size += len(chunk)
            check_size(size)
            parts.append(chunk)
        body = b"".join(parts)
        if answer.status != 200:
            raise status_error(
                self._endpoint, status=answer.status, headers=answer.headers, body=body
            )
        return self._decoded(body, answer.headers, names)

    def _seconds(self, request: ModelRequest) -> float:
        return request.settings.timeout_seconds or self._timeout

    @contextmanager
    def _patience(self, seconds: float) -> Iterator[Patience]:
        """Patience for one attempt, whose end is raised in our words."""
        try:
            with Patience(seconds) as patience:
                yield patience
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"{self._endpoint.place} sent nothing usable for {seconds:g} s (model "
                f"{self._model!r}). Allow more with timeout_seconds, or look into the server's load"
            ) from error

    def _priced(self, response: ModelResponse) -> ModelResponse:
        if self._prices is None:
            return response
        usage = priced(response.usage, self._prices, self._model, response.model)
        return replace(response, usage=usage)


def _endpoint_url(base_url: str) -> tuple[str, bool]:
    """The URL to post to, its query kept (Azure's api-version), and whether it is OpenAI's."""
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"base_url={base_url!r} is not an http(s) URL; give something like "
            "'http://localhost:8080/v1'"
        )
    path = f"{parts.path.rstrip('/')}/chat/completions"
    url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    return url, parts.hostname == OPENAI_HOST


def _endpoint(model: str, url: str, api_key: str | None, *, is_openai: bool) -> Endpoint:
    source = "the api_key that was passed to the model"
    if api_key is None:
        api_key, source = os.environ.get("OPENAI_API_KEY"), "the variable OPENAI_API_KEY"
    if not api_key:
        if is_openai:
            raise UsageError(
                f"no API key for {model!r} at OpenAI: set OPENAI_API_KEY, or give the key"
            )
        source = "none was sent; set OPENAI_API_KEY, or give the key"
    return Endpoint(place=place(url), model=model, key_source=source, api_key=api_key or None)


def _headers(api_key: str | None, further: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "User-Agent": f"agentkit/{__version__}",
    }
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    names = {name.lower() for name in further}
    return {k: v for k, v in headers.items() if k.lower() not in names} | dict(further)


def _is_json(headers: Mapping[str, str]) -> bool:
    kind = next((v for name, v in headers.items() if name.lower() == "content-type"), "")
    return kind.partition(";")[0].strip().lower() == "application/json"


_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """US dollars per million tokens, as providers print them.

    Attributes:
        prompt: Tokens read.
        completion: Tokens written.
        cached: Tokens read from the provider's prompt cache; None charges them as any other.

    Example:
        >>> usage = Usage(prompt_tokens=1_000_000, cached_tokens=500_000, completion_tokens=100_000)
        >>> Price(prompt=0.15, cached=0.075, completion=0.60).cost_of(usage)
        0.1725
    """

    prompt: float
    completion: float
    cached: float | None = None

    def cost_of(self, usage: Usage) -> float:
        """The price of a usage in US dollars."""
        cached_price = self.prompt if self.cached is None else self.cached
        return (
            (usage.prompt_tokens - usage.cached_tokens) * self.prompt
            + usage.cached_tokens * cached_price
            + usage.completion_tokens * self.completion
        ) / _MILLION


Prices: TypeAlias = Price | Mapping[str, Price]
"""One price, or prices by model name."""


def priced(usage: Usage, prices: Prices | None, *models: str) -> Usage:
    """The usage with its cost, when a price is known for one of the names (the first that is)."""
    if prices is None:
        return usage
    if isinstance(prices, Price):
        return replace(usage, cost_usd=prices.cost_of(usage))
    price = next((prices[model] for model in models if model in prices), None)
    return usage if price is None else replace(usage, cost_usd=price.cost_of(usage))
