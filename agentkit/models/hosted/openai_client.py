"""What both adapters over OpenAI's SDK share: the client, the key, the words for errors."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentkit._loop_bound import LoopBound
from agentkit.errors import MissingExtraError, ModelError, UsageError
from agentkit.models.hosted.sdk_errors import translated_sdk_error
from agentkit.models.openai_compatible import OPENAI_HOST, OPENAI_URL
from agentkit.models.status import Endpoint
from agentkit.models.transport.base import place

if TYPE_CHECKING:
    import openai

_KEY_SOURCE = "the variable OPENAI_API_KEY, or the key of the client that was passed"


class OpenAIClient:
    """A client of the caller's, or one of our own for each event loop.

    Args:
        name: The model's name with its scheme, for messages.
        client: The caller's client, or None.

    Attributes:
        is_openai: Whether OpenAI itself is asked.

    Raises:
        MissingExtraError: The package openai is not installed.
        UsageError: There is no key.
    """

    def __init__(self, name: str, client: openai.AsyncOpenAI | None) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(
                repr(name), package="openai", install='pip install "agentkit-evolve[openai]"'
            ) from error
        del openai  # imported here and not in the first request
        if client is None and not os.environ.get("OPENAI_API_KEY"):
            raise UsageError(f"no API key for {name!r}: set OPENAI_API_KEY")
        base_url = os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        url = base_url if client is None else str(client.base_url)
        self.is_openai = urlsplit(url).hostname == OPENAI_HOST
        self._endpoint = Endpoint(
            place=place(url),
            model=name.partition(":")[2],
            key_source=_KEY_SOURCE,
            api_key=os.environ.get("OPENAI_API_KEY") if client is None else client.api_key,
        )
        self._client = client
        self._own: LoopBound[openai.AsyncOpenAI] = LoopBound(
            opened=_open_client,
            closed=lambda own: own.close(),
            is_closed=lambda own: own.is_closed(),
        )

    @property
    def endpoint(self) -> Endpoint:
        """Who is asked, with the key of now: a client of the caller may fetch it anew."""
        key = "" if self._client is None else self._client.api_key
        return replace(self._endpoint, api_key=key) if key else self._endpoint

    async def get(self) -> openai.AsyncOpenAI:
        """The client for the running event loop."""
        return self._client or await self._own.get()

    def translated(self, error: Exception) -> ModelError | None:
        """The SDK's error as ours; None for one that is not the SDK's."""
        import openai

        return translated_sdk_error(error, openai, self.endpoint)

    async def close(self) -> None:
        """Close our own client of the running event loop."""
        await self._own.close()


def _open_client() -> openai.AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(max_retries=0, timeout=None)  # both are HostedModel's business
