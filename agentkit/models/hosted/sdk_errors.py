"""The errors of the SDKs as ours: one generator wrote openai's and anthropic's, litellm borrows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    ModelTimeoutError,
)
from agentkit.models.status import Endpoint, status_error

_HTTP_LIBRARIES = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "aiohttp"})


def translated_sdk_error(
    error: Exception, sdk: ModuleType, endpoint: Endpoint
) -> ModelError | None:
    """An SDK's error as ours, or None when it is not the SDK's.

    Args:
        error: What was raised.
        sdk: The module whose error classes it may have.
        endpoint: Who was asked.
    """
    errors: Any = sdk
    if isinstance(error, errors.APITimeoutError):
        return ModelTimeoutError(f"{endpoint.place} did not answer in time ({error})")
    if isinstance(error, errors.APIConnectionError) or _is_transport_error(error):
        cause = error.__cause__ or error
        return ModelConnectionError(
            f"could not talk to {endpoint.place} ({type(cause).__name__}: {cause}). Is it "
            "reachable, and are the base URL and the proxy settings right?"
        )
    if isinstance(error, errors.APIResponseValidationError):
        return ModelResponseError(f"the answer of {endpoint.place} has the wrong shape: {error}")
    if isinstance(error, errors.APIError):  # a status, or an error inside a stream
        return status_error(
            endpoint,
            status=getattr(error, "status_code", None) or 500,
            headers=_headers_of(error),
            body=_body_of(error),
        )
    if isinstance(error, json.JSONDecodeError):
        return ModelResponseError(f"the answer of {endpoint.place} is not JSON ({error})")
    return None


def lost_connection(error: Exception) -> Exception | None:
    """The HTTP library's error that a status was made of although no answer came, if it was one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Exception) and _is_transport_error(cause) and not _has_answer(cause):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _has_answer(error: Exception) -> bool:
    return "StatusError" in type(error).__name__


def _headers_of(error: Any) -> Mapping[str, str]:
    """The answer's headers; litellm puts them elsewhere than the SDKs."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return headers or ({} if response is None else response.headers)


def _body_of(error: Any) -> bytes:
    body = getattr(error, "body", None)
    if isinstance(body, str) and body:
        return body.encode()
    return json.dumps(body).encode() if body else str(error).encode()


def _is_transport_error(error: Exception) -> bool:
    """Whether it comes from an HTTP library: SDKs let those through while they read a stream."""
    return any(kind.__module__.partition(".")[0] in _HTTP_LIBRARIES for kind in type(error).__mro__)
