"""``litellm:PROVIDER/MODEL``: every provider that litellm knows."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Iterator, Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from agentkit.errors import (
    MissingExtraError,
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    ModelTimeoutError,
)
from agentkit.messages import JsonObject
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse
from agentkit.models.chat_completions import (
    CompletionAssembler,
    RequestEncoder,
    decode_completion,
)
from agentkit.models.http_model import RemoteModel
from agentkit.models.prices import Price, known_price, listed_media, priced
from agentkit.models.retries import DEFAULT_RETRY, IdleTimeout, RetryPolicy
from agentkit.models.status import Endpoint, status_error
from agentkit.models.transport import cut_short, is_transport_error
from agentkit.models.wire import WireNames

_LOCAL_LISTS = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS")
_SHORTEST_KEY = 8
_INSTALL = 'pip install "agentkit-evolve[litellm]"'


def litellm_model(
    model: str, *, retry: RetryPolicy = DEFAULT_RETRY, timeout_seconds: float = 60.0
) -> LiteLLMModel:
    """A model of any provider that litellm knows, with the price by litellm's table or ours.

    Importing litellm takes seconds, which is why it happens here and not in the first request. It
    would fetch a price list from the net while it is imported, and a list of headers with the
    first request to Anthropic; unless ``LITELLM_LOCAL_MODEL_COST_MAP`` and
    ``LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS`` are set, it uses those it carries. Its hints
    on standard output are switched off (``litellm.suppress_debug_info``). It reports a lost
    connection as status 500 and ends half a stream as if it were whole; both are detected by
    what lies behind, where it shows that.

    Args:
        model: litellm's name, such as ``anthropic/claude-sonnet-5-5``; keys come from the
            variables that litellm documents. Its own arguments (``api_base``, ``api_key``, ...) go
            into ``ModelSettings.extra``.
        retry: When to send a request again; litellm's own retries are off.
        timeout_seconds: Longest wait for an answer.

    Raises:
        MissingExtraError: litellm is not installed.
    """
    for variable in _LOCAL_LISTS:
        os.environ.setdefault(variable, "True")
    try:
        import litellm
    except ImportError as error:
        raise MissingExtraError(
            f"'litellm:{model}'", package=error.name or "litellm", install=_INSTALL
        ) from error
    litellm.suppress_debug_info = True
    return LiteLLMModel(
        model, provider_name="litellm", retry=retry, timeout_seconds=timeout_seconds
    )


class LiteLLMModel(RemoteModel):
    """A model through litellm; ``litellm_model`` makes it."""

    @property
    def reports_cost(self) -> bool:
        """Whether a table of prices has the model."""
        return self._price is not None

    @property
    def accepts(self) -> AbstractSet[str]:
        """What the model accepts beside text, by litellm's list."""
        return listed_media(self.name) or listed_media(self._bare) or frozenset()

    @property
    def _bare(self) -> str:
        return self.name.partition("/")[2]

    @cached_property
    def _price(self) -> Price | None:
        return known_price(self.name) or known_price(self._bare)

    async def close(self) -> None:
        """Nothing to close: litellm keeps its clients itself."""

    async def _answer(self, request: ModelRequest, idle: IdleTimeout) -> ModelResponse:
        import litellm

        with self._translating():
            fields, names = self._fields(request)
            answer: Any = await idle.wait(litellm.acompletion(**fields))
            return self._read(answer.model_dump(), names)

    async def _events(
        self, request: ModelRequest, idle: IdleTimeout
    ) -> AsyncGenerator[ModelEvent, None]:
        import litellm

        with self._translating():
            fields, names = self._fields(request, stream=True)
            assembler = CompletionAssembler()
            chunks: Any = await idle.wait(litellm.acompletion(**fields))
            pieces = aiter(chunks)
            while (chunk := await idle.wait(anext(pieces, None))) is not None:
                delta = assembler.add(chunk.model_dump())
                if delta is not None:
                    yield delta
            heard = getattr(chunks, "received_finish_reason", True)  # it makes one up without
            if heard is None or not assembler.is_finished:
                raise cut_short(f"litellm for {self.name!r}")
            yield self._read(assembler.finish(), names)

    def _read(self, completion: JsonObject, names: WireNames) -> ModelResponse:
        response = decode_completion(completion, names)
        return replace(response, usage=priced(response.usage, self._price))

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise litellm's errors, which are openai's, as ours."""
        import openai

        try:
            yield
        except (ModelError, TimeoutError):
            raise
        except Exception as error:
            # What lies behind an error that broke a stream in the middle says more.
            original = getattr(error, "original_exception", None)
            shown = original if isinstance(original, Exception) else error
            endpoint = Endpoint(
                place="litellm",
                model=self.name,
                key_source="the variable that litellm documents for it",
                further_keys=_keys_set(),
            )
            if "Missing credentials" in str(shown):  # found before anything was sent
                raise status_error(
                    endpoint, status=401, headers={}, body=str(shown).encode()
                ) from error
            found = translated_sdk_error(lost_connection(shown) or shown, openai, endpoint)
            if found is None:
                raise
            raise found from error

    def _fields(
        self, request: ModelRequest, *, stream: bool = False
    ) -> tuple[dict[str, Any], WireNames]:
        if request.tools and find_spec("mcp") is None:  # litellm imports it for any such call
            raise MissingExtraError("litellm with tools", package="mcp", install=_INSTALL)
        encoder = RequestEncoder(self.name, max_tokens_field="max_tokens")
        body, names = encoder.encode(request, stream=stream)
        return {"num_retries": 0, "max_retries": 0, **json.loads(body)}, names


def _keys_set() -> tuple[str, ...]:
    """Values of variables that are named like keys: litellm does not say which one it sends."""
    named = (value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN")))
    return tuple(value for value in named if len(value) >= _SHORTEST_KEY)


def translated_sdk_error(
    error: Exception, sdk: ModuleType, endpoint: Endpoint
) -> ModelError | None:
    """An SDK's error as ours, or None when it is not the SDK's.

    Args:
        error: What was raised.
        sdk: The module whose error classes it may have.
        endpoint: The endpoint that was asked.
    """
    if isinstance(error, sdk.APITimeoutError):
        return ModelTimeoutError(f"{endpoint.place} did not answer in time ({error})")
    if isinstance(error, sdk.APIConnectionError) or is_transport_error(error):
        cause = error.__cause__ or error
        return ModelConnectionError(
            f"could not talk to {endpoint.place} ({type(cause).__name__}: {cause}). Is it "
            "reachable, and are the base URL and the proxy settings right?"
        )
    if isinstance(error, sdk.APIResponseValidationError | json.JSONDecodeError):
        return ModelResponseError(f"the answer of {endpoint.place} cannot be read: {error}")
    if not isinstance(error, sdk.APIError):
        return None
    response, body = getattr(error, "response", None), getattr(error, "body", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", {})
    text = body if isinstance(body, str) else json.dumps(body) if body else ""
    return status_error(
        endpoint,
        status=getattr(error, "status_code", None) or 500,  # or an error inside a stream
        headers=headers,
        body=(text or str(error)).encode(),
    )


def lost_connection(error: Exception) -> Exception | None:
    """The HTTP library's error that a status was made of although no answer came, if it was one."""
    cause: BaseException | None = error
    while cause is not None:
        has_answer = "StatusError" in type(cause).__name__
        if isinstance(cause, Exception) and is_transport_error(cause) and not has_answer:
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
