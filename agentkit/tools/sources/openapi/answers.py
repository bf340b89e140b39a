"""What came back, as a value for the model or as a signal in words that it can act on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.errors import ModelRetry, ReadingLimitError, ToolFailed, ToolSignal
from agentkit.reading import read_json
from agentkit.tools.sources.openapi.json_data import plain_json
from agentkit.tools.sources.openapi.request_bodies import kind_of

_LONGEST_DETAIL = 600
_WORDS = ("detail", "message", "title", "error_description", "description", "reason", "msg")
_NESTED = ("detail", "errors", "error", "details", "invalid_params", "invalid-params", "violations")
_PLACES = ("field", "loc", "pointer", "name", "path", "param")
_MAX_DEPTH = 4

AGAIN_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of trouble that may be gone at another try."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """An answer, its secrets taken out.

    Attributes:
        status: The status code.
        media_type: Its ``Content-Type`` without parameters, in lower case.
        text: The body as text; None when it is not text.
        size: The length of the body in bytes.
        retry_after: Seconds that the server asks to wait; None when it does not.
        location: Where a redirect leads.
    """

    status: int
    media_type: str
    text: str | None
    size: int
    retry_after: float | None = None
    location: str = ""


def value_of(answer: HttpAnswer) -> Any:
    """The value of a success: decoded JSON, text, or a description of what is neither.

    Raises:
        ToolFailed: It holds far too many values, or is nested too deeply.
    """
    if answer.size == 0:
        return {"status": answer.status}
    if answer.text is None:
        return {
            "status": answer.status,
            "content_type": answer.media_type or "unknown",
            "bytes": answer.size,
            "note": "the content is binary and is not shown",
        }
    if kind_of(answer.media_type or "application/json") == "json" or not answer.media_type:
        try:
            return plain_json(read_json(answer.text))
        except ReadingLimitError as error:
            raise ToolFailed(f"the server's answer can not be used: {error}") from error
        except ValueError:
            return answer.text  # declared as JSON, but is not: the text is all there is
    return answer.text


def signal_of(answer: HttpAnswer, *, what: str) -> ToolSignal:
    """The signal for an answer that is no success.

    Args:
        answer: The answer.
        what: Method and path, for the words.
    """
    said = detail_of(answer)
    told = f"{what} was answered with {answer.status}" + (f": {said}" if said else "")
    match answer.status:
        case 400 | 409 | 413 | 414 | 416 | 422:
            return ModelRetry(f"{told}. Change the arguments accordingly")
        case 404 | 410:
            return ModelRetry(f"{told}. There is nothing of that name or id; look it up first")
        case 401 | 403:
            return ToolFailed(
                f"{told}. The credentials do not allow this call, and other arguments will not "
                "change that"
            )
        case status if status in AGAIN_LATER:
            wait = (
                f"; the server asks to wait {answer.retry_after:g} s" if answer.retry_after else ""
            )
            return ToolFailed(f"{told}. The server is in trouble or too busy{wait}; try later")
        case status if 300 <= status < 400:
            return ToolFailed(f"{told}. It leads elsewhere, and that is not followed")
        case _:
            return ToolFailed(told)


def detail_of(answer: HttpAnswer) -> str:
    """What an error answer says: problem details (RFC 9457), the usual JSON, or the text itself."""
    if answer.text is None:
        return ""
    if "html" in answer.media_type:
        return "an HTML page"
    try:
        data = read_json(answer.text)
    except ValueError:
        return " ".join(answer.text.split())[:_LONGEST_DETAIL]
    words = dict.fromkeys(_said(data, 0))
    text = "; ".join(words) if words else answer.text
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _said(data: Any, depth: int) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif depth > _MAX_DEPTH:
        return
    elif isinstance(data, list):
        for item in data[:20]:
            yield from _said(item, depth + 1)
    elif isinstance(data, Mapping):
        yield from _said_by(data, depth)


def _said_by(data: Mapping[str, Any], depth: int) -> Iterator[str]:
    place = next((data[key] for key in _PLACES if key in data), "") if depth else ""
    prefix = f"{_place(place)}: " if place else ""
    words = [data[key] for key in _WORDS if isinstance(data.get(key), str) and data[key]]
    yield from (f"{prefix}{word}" for word in words)
    for key in _NESTED:
        nested = data.get(key)
        if isinstance(nested, Mapping) and not nested.keys() & {*_WORDS, *_NESTED}:
            yield from (f"{name}: {_flat(item)}" for name, item in nested.items())
        elif nested is not None and nested not in words:
            yield from _said(nested, depth + 1)


def _place(place: Any) -> str:
    return ".".join(map(str, place)) if isinstance(place, list) else str(place)


def _flat(item: Any) -> str:
    if isinstance(item, list) and all(isinstance(each, str) for each in item):
        return ", ".join(item)
    return item if isinstance(item, str) else json.dumps(item, default=str)
