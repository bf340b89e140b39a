"""``HttpModel``: a model behind an HTTP API, whatever the protocol.

Retries, timeouts, prices and errors are the same for every provider. A protocol is an ``Exchange``:
it writes the request and reads the answer. The bytes travel over a ``Transport``.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Set as AbstractSet,
)
from contextlib import (
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol, Self

from agentkit.errors import ModelConnectionError, ModelResponseError, ModelTimeoutError
from agentkit.messages import JsonObject
from agentkit.models.base import Delta, ModelEvent, ModelRequest, ModelResponse, TextDelta
from agentkit.models.prices import Price, Prices, priced
from agentkit.models.retries import (
    DEFAULT_RETRY,
    IdleTimeout,
    RetryPolicy,
    stream_with_retries,
    with_retries,
)
from agentkit.models.status import Endpoint, embedded_error, header_of, status_error
from agentkit.models.transport import HttpStream, Transport, cut_short
from agentkit.models.wire import EventParser, parse_object, read_body

_BYTES_A_TURN = 4_096
_DRAIN_SECONDS = 0.2


@dataclass(eq=False, repr=False)
class RemoteModel(ABC):
    """A model that answers over a network: each request has timeouts and is tried again.

    Attributes:
        name: The model's name.
        provider_name: The provider, in OpenTelemetry's terms.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer, and for the next piece of a streamed one;
            ``ModelSettings.timeout_seconds`` wins.
    """

    name: str
    _: KW_ONLY
    provider_name: str
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_seconds: float = 60.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Close the connections of the running event loop; a later request opens new ones."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, trying again as ``retry`` says.

        Raises:
            ModelError: The model could not answer; a subclass says why.
            UsageError: Something in the request is not JSON data.
        """
        return await with_retries(self.retry, lambda: self._complete_once(request))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it arrives, then the whole response exactly once.

        A request is sent again only as long as nothing was yielded.

        Raises:
            ModelError: As ``complete``; half a stream is a ``ModelConnectionError``.
            UsageError: Something in the request is not JSON data.
        """
        return stream_with_retries(self.retry, lambda: self._stream_once(request))

    @abstractmethod
    async def _answer(self, request: ModelRequest, idle: IdleTimeout) -> ModelResponse:
        """Answer one request in one attempt; each wait goes through ``idle``."""

    @abstractmethod
    def _events(self, request: ModelRequest, idle: IdleTimeout) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer in one attempt, the whole response last."""

    async def _complete_once(self, request: ModelRequest) -> ModelResponse:
        with self._timeout(request) as idle:
            return await self._answer(request, idle)

    async def _stream_once(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with self._timeout(request) as idle:
            async with aclosing(self._events(request, idle)) as events:
                async for event in events:
                    yield event

    @contextmanager
    def _timeout(self, request: ModelRequest) -> Iterator[IdleTimeout]:
        seconds = request.settings.timeout_seconds or self.timeout_seconds
        try:
            yield IdleTimeout(seconds)
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"{self!r} sent nothing usable for {seconds:g} s. Allow more with "
                "timeout_seconds, or look into the server's load"
            ) from error


class StreamAssembler(Protocol):
    """Puts the events of a streamed answer together."""

    def add(self, event: JsonObject) -> Delta | None:
        """Take one event; returns what it adds to text or reasoning."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the answer has come to its end."""
        ...

    def finish(self) -> JsonObject:
        """The answer as it would have come as a whole."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One request in a provider's protocol, and how its answer is read.

    Attributes:
        body: The request.
        decode: Builds the response from an answer.
        assembler: Builds the answer from a stream.
        headers: Headers of this request alone.
    """

    body: bytes
    decode: Callable[[JsonObject], ModelResponse]
    assembler: StreamAssembler
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False, repr=False, kw_only=True)
class HttpModel(RemoteModel):
    """A model behind an HTTP API.

    Attributes:
        begin: Starts an exchange for a request; its argument says whether to stream.
        url: Where requests go.
        endpoint: The endpoint, for error messages.
        headers: Headers of every request.
        transport: Sends them.
        prices: To report what an answer cost; without them ``Usage.cost_usd`` stays None.
        media: What it accepts beside text, see ``agentkit.models.accepted_media``, or a function
            that returns it.
    """

    begin: Callable[[ModelRequest, bool], Exchange]
    url: str
    endpoint: Endpoint
    headers: Mapping[str, str]
    transport: Transport
    prices: Prices | None = None
    media: AbstractSet[str] | Callable[[], AbstractSet[str]] = frozenset()

    @property
    def accepts(self) -> AbstractSet[str]:
        """What the model accepts beside text."""
        return self.media() if callable(self.media) else self.media

    @property
    def reports_cost(self) -> bool:
        """Whether answers come with what they cost."""
        prices = self.prices
        return isinstance(prices, Price) or (prices is not None and self.name in prices)

    async def close(self) -> None:
        """Close the connections of the running event loop; a later request opens new ones."""
        await self.transport.close()

    async def _answer(self, request: ModelRequest, idle: IdleTimeout) -> ModelResponse:
        exchange = self.begin(request, False)
        with self._hiding_keys():
            return await idle.wait(self._whole(exchange))

    @contextmanager
    def _hiding_keys(self) -> Iterator[None]:
        """Keep the key out of errors that quote an answer."""
        try:
            yield
        except ModelResponseError as error:
            told = self.endpoint.without_keys(str(error))
            if told == str(error):
                raise
            raise ModelResponseError(told) from None

    @asynccontextmanager
    async def _sent(self, exchange: Exchange) -> AsyncIterator[HttpStream]:
        """The answer to a request; compressed ones are refused: 40 kB may be 40 MB of lines."""
        headers = {**self.headers, **exchange.headers} if exchange.headers else self.headers
        async with self.transport.stream(self.url, headers, exchange.body) as answer:
            encoding = header_of(answer.headers, "content-encoding").strip().lower()
            if encoding.removeprefix("identity"):
                raise ModelResponseError(
                    f"the answer of {self.endpoint.place} is compressed ({encoding[:20]}), "
                    "and was not asked to be. Look at the server, or a proxy before it"
                )
            yield answer

    async def _whole(self, exchange: Exchange) -> ModelResponse:
        sending = self._sent(exchange)
        async with sending as answer:
            body = await read_body(answer.pieces)
        return self._priced(exchange.decode(self._decoded(answer, body)))

    async def _events(
        self, request: ModelRequest, idle: IdleTimeout
    ) -> AsyncGenerator[ModelEvent, None]:
        exchange, has_spoken = self.begin(request, True), False
        async with AsyncExitStack() as stack:
            stack.enter_context(self._hiding_keys())
            opening = self._sent(exchange)
            answer = await idle.wait(stack.enter_async_context(opening))
            if answer.status != 200 or _is_json(answer.headers):  # an error, or it does not stream
                body = await idle.wait(read_body(answer.pieces))
                response = exchange.decode(self._decoded(answer, body))
            else:
                async with aclosing(self._deltas(exchange, answer, idle)) as deltas:
                    async for delta in deltas:
                        has_spoken = has_spoken or isinstance(delta, TextDelta)
                        yield delta
                response = exchange.decode(exchange.assembler.finish())
        if response.message.text and not has_spoken:  # it did not stream, or called a tool for it
            yield TextDelta(text=response.message.text)
        yield self._priced(response)

    async def _deltas(
        self, exchange: Exchange, answer: HttpStream, idle: IdleTimeout
    ) -> AsyncGenerator[Delta, None]:
        """Text and reasoning of a stream, piece by piece; its end is checked."""
        parser, waiting = EventParser(), b""
        while chunk := waiting or await idle.wait(anext(answer.pieces, b"")):
            chunk, waiting = chunk[:_BYTES_A_TURN], chunk[_BYTES_A_TURN:]
            for data in parser.feed(chunk):
                if data == "[DONE]":
                    await _drain(answer)
                    return
                event = parse_object(data, f"an event in the stream of {self.endpoint.place}")
                self._refuse_error(event, answer.headers)
                delta = exchange.assembler.add(event)
                if delta is not None:
                    yield delta
            if waiting:
                await asyncio.sleep(0)  # events that came together leave turns to others
        if not exchange.assembler.is_finished:
            raise cut_short(self.endpoint.place)

    def _decoded(self, answer: HttpStream, body: bytes) -> JsonObject:
        if answer.status != 200:
            raise status_error(
                self.endpoint, status=answer.status, headers=answer.headers, body=body
            )
        decoded = parse_object(body, f"the answer of {self.endpoint.place}")
        self._refuse_error(decoded, answer.headers)
        return decoded

    def _refuse_error(self, answer: JsonObject, headers: Mapping[str, str]) -> None:
        error = embedded_error(self.endpoint, answer, headers)
        if error is not None:
            raise error

    def _priced(self, response: ModelResponse) -> ModelResponse:
        if self.prices is None:
            return response
        usage = priced(response.usage, self.prices, self.name, response.model)
        return replace(response, usage=usage)


async def _drain(answer: HttpStream) -> None:
    """Read to the end, so that the connection can be used again.

    The answer is complete by then: a server that does not end its body costs a connection,
    and nothing that the caller needs to know.
    """
    with suppress(ModelConnectionError, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in answer.pieces:
                pass


def _is_json(headers: Mapping[str, str]) -> bool:
    kind = header_of(headers, "content-type")
    return kind.partition(";")[0].strip().lower() == "application/json"
