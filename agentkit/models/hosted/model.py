"""``HostedModel``: what every SDK adapter has in common, over the little that differs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Protocol, Self

from agentkit.errors import ModelError, ModelTimeoutError
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse
from agentkit.models.patience import Patience
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy, stream_with_retries, with_retries


class Provider(Protocol):
    """One SDK, one model: a single attempt, without deadline or retry."""

    @property
    def defers_tools(self) -> bool:
        """Whether it sends ``ModelRequest.deferred`` for the provider to search."""
        ...

    async def answer(self, request: ModelRequest) -> ModelResponse:
        """Answer one request; raises what the SDK raises, or a ``ModelError``."""
        ...

    def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer, the whole response last; raises as ``answer``."""
        ...

    def translated(self, error: Exception) -> ModelError | None:
        """The SDK's error as ours; None for one that is not the SDK's."""
        ...

    async def close(self) -> None:
        """Close the SDK's connections."""
        ...


class HostedModel:
    """A model reached through a provider's SDK.

    Deadlines and retries are ours, the same for every provider; the SDKs' own are switched off.

    Args:
        name: The model's name.
        provider: The SDK behind it.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer, and for the next piece of a streamed one;
            ``ModelSettings.timeout_seconds`` wins.
    """

    def __init__(
        self,
        name: str,
        provider: Provider,
        *,
        retry: RetryPolicy = DEFAULT_RETRY,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._name = name
        self._provider = provider
        self._retry = retry
        self._timeout = timeout_seconds

    def __repr__(self) -> str:
        return f"{type(self._provider).__name__.removeprefix('_')}({self._name!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def provider_name(self) -> str:
        """The provider, or the SDK that hides which, in the words of OpenTelemetry."""
        return type(self._provider).__name__.removesuffix("Responses").lower()

    @property
    def defers_tools(self) -> bool:
        """Whether the provider searches among the tools of ``ModelRequest.deferred``."""
        return self._provider.defers_tools

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running event loop; a later request opens new ones."""
        await self._provider.close()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, trying again as ``retry`` says.

        Raises:
            ModelError: The model could not answer; a subclass says why.
        """
        return await with_retries(self._retry, lambda: self._answer(request))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it arrives, then the whole response exactly once.

        Raises:
            ModelError: As ``complete``; half a stream is a ``ModelConnectionError``.
        """
        return stream_with_retries(self._retry, lambda: self._events(request))

    async def _answer(self, request: ModelRequest) -> ModelResponse:
        with self._asking(request) as patience:
            return await patience.wait(self._provider.answer(request))

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        with self._asking(request) as patience:
            async with aclosing(self._provider.events(request)) as events:
                while (event := await patience.wait(anext(events, None))) is not None:
                    yield event

    @contextmanager
    def _asking(self, request: ModelRequest) -> Iterator[Patience]:
        """Patience for one attempt; what goes wrong in it is raised in our words."""
        seconds = request.settings.timeout_seconds or self._timeout
        try:
            with Patience(seconds) as patience:
                yield patience
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"{self!r} sent nothing usable for {seconds:g} s. Allow more with timeout_seconds"
            ) from error
        except ModelError:
            raise
        except Exception as error:
            translated = self._provider.translated(error)
            if translated is None:
                raise
            raise translated from error
