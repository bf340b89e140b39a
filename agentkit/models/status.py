"""An error status, or an error object inside an answer, to a ``ModelStatusError`` worth reading."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.errors import ModelStatusError, UsageError
from agentkit.messages import JsonObject
from agentkit.models.wire import parse_json, shown

_TOLD_OF_A_KEY = 4  # characters that may be seen where a quotation is cut within a key
_KEPT_BODY = 2000
_LONGEST_WAIT = 86_400.0
_REFUSED = (
    "The server understood the request and refused it: see its words; common causes are a setting "
    "it does not know and a prompt longer than the model's context"
)
_LIMITED = "The server is limiting requests: send fewer at once, or check the quota"
_SERVER_FAILED = "The server failed: try again later, or look into its log"
_NOT_FOUND = (
    "Check the model's name, and the base URL: that of OpenAI and its like usually ends in /v1, "
    "that of Anthropic does not"
)
_ADVICE = {400: _REFUSED, 404: _NOT_FOUND, 413: _REFUSED, 422: _REFUSED} | dict.fromkeys(
    (402, 408, 409, 425, 429), _LIMITED
)

_FAILED = ("error", "response.failed")
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""The status OpenAI and Anthropic send with these codes, unless they have already sent 200."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """The endpoint and model of a request, for error messages.

    Attributes:
        place: URL of the server, without credentials.
        model: The model's name.
        key_source: Where the key came from, as text.
        api_key: The key, to keep it out of messages; None when none is sent.
        further_keys: Others that may be sent, to keep them out of messages as well.

    Raises:
        UsageError: The key holds what no HTTP header may hold, such as a line break.
    """

    place: str
    model: str
    key_source: str
    api_key: str | None = None
    further_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.api_key and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise UsageError(
                f"the key for {self.model!r} ({self.key_source}) holds a character that cannot be "
                "sent, such as a line break at its end or a letter that is not ASCII. Set it again"
            )

    def without_keys(self, text: str) -> str:
        """What a server said, or a message that quotes it and cuts it short (``…``)."""
        for key in filter(None, (self.api_key, *self.further_keys)):
            text = text.replace(key, "***")
            for size in range(len(key) - 1, _TOLD_OF_A_KEY, -1):
                text = text.replace(f"{key[:size]}…", "***…")
        return text


def status_error(
    endpoint: Endpoint,
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> ModelStatusError:
    """The error for an answer with an error status: what the server said, and what to do.

    Args:
        endpoint: The endpoint that was asked.
        status: The status code.
        headers: The answer's headers.
        body: The answer's body.
    """
    text = endpoint.without_keys(body.decode("utf-8", "replace"))
    message = _message_in(text)
    return ModelStatusError(
        f"{endpoint.place} answered {status} for model {endpoint.model!r}"
        f"{': ' + message if message else ''}. {_advice(endpoint, status, headers)}",
        status=status,
        body=text[:_KEPT_BODY],
        retry_after=retry_after_seconds(headers),
    )


def embedded_error(
    endpoint: Endpoint, answer: JsonObject, headers: Mapping[str, str]
) -> ModelStatusError | None:
    """The error that an answer with status 200 reports inside, or None.

    Gateways do so when the model behind them fails, and streams when it fails midway. The code in
    the object counts as the status when it is one, or a word of OpenAI's or Anthropic's for one,
    and 500 otherwise.
    """
    error = answer.get("error")
    if not error and answer.get("type") in _FAILED:  # of the Responses API
        ended = answer.get("response")
        error = ended.get("error") if isinstance(ended, dict) else answer
    if not error:
        return None
    codes = (error.get("code"), error.get("type")) if isinstance(error, dict) else ()
    status = next((found for one in codes if (found := _status_of(one)) is not None), 500)
    body = json.dumps({"error": error}).encode()
    return status_error(endpoint, status=status, headers=headers, body=body)


def _status_of(code: object) -> int | None:
    """The status that a code is or stands for."""
    if isinstance(code, str) and code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[code]
    digits = str(code)
    return int(digits) if digits.isdecimal() and 400 <= int(digits) <= 599 else None


def header_of(headers: Mapping[str, str], name: str) -> str:
    """The value of a header, whose name is written in any case; empty without it."""
    return next((value for key, value in headers.items() if key.lower() == name), "")


def retry_after_seconds(
    headers: Mapping[str, str], now: Callable[[], float] = time.time
) -> float | None:
    """Seconds that the server asks to wait: RFC 9110 section 10.2.3, seconds or an HTTP date.

    ``retry-after-ms``, which OpenAI sends, is more exact and wins.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = lower.get(name, "").strip()
        if value.replace(".", "", 1).isdecimal():
            return min(float(value) / unit, _LONGEST_WAIT)
    return _seconds_until(lower.get("retry-after", ""), now)


def _seconds_until(date: str, now: Callable[[], float]) -> float | None:
    if not date:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return min(max(0.0, parsedate_to_datetime(date).timestamp() - now()), _LONGEST_WAIT)
    except (ValueError, OverflowError):  # neither seconds nor a date: the server's wish is unknown
        return None


def _message_in(text: str) -> str:
    """The server's own words, wherever it puts them."""
    try:
        value: Any = parse_json(text)
    except ValueError:
        return shown(text.strip()) if text.strip() else ""
    if isinstance(value, list) and value:  # Gemini's compatible endpoint wraps the object
        value = value[0]
    for key in ("error", "message", "detail"):
        while isinstance(value, dict) and value.get(key):
            value = value[key]
    return value if isinstance(value, str) else shown(value)


def _advice(endpoint: Endpoint, status: int, headers: Mapping[str, str]) -> str:
    if 300 <= status < 400:
        location = header_of(headers, "location") or "elsewhere"
        return f"It redirects to {location}; give that as the base URL"
    if status in {401, 403}:
        return f"Check the key: {endpoint.key_source}"
    return _ADVICE.get(status, _SERVER_FAILED if status >= 500 else _REFUSED)
