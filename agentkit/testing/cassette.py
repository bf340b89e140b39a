"""A cassette: requests and their answers as JSON lines, for people to read and for git to diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentkit.errors import StoreFormatError
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    TokenIds,
    Usage,
    message_from_json,
    message_to_json,
)
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.testing.redaction import without_secret_fields
from agentkit.tools.canonical import digest

FORMAT_VERSION = 1
"""Version of a line's form."""

_SHOWN_LINES = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One line.

    Attributes:
        request: The request as JSON, without secrets.
        response: What the model answered.
        model: The model's name.
    """

    request: JsonObject
    response: ModelResponse
    model: str

    @property
    def digest(self) -> str:
        """What the request is found by."""
        return digest(self.request)

    def to_line(self, redact: Callable[[Any], Any]) -> str:
        """The line, without secrets."""
        record = {
            "format": FORMAT_VERSION,
            "digest": self.digest,
            "model": self.model,
            "request": self.request,
            "response": redact(_response_to_json(self.response)),
        }
        return json.dumps(record, ensure_ascii=False) + "\n"


def request_to_json(request: ModelRequest, redact: Callable[[Any], Any]) -> JsonObject:
    """What a request is recognised by, in readable form and without secrets.

    Tools are their names and digests, so a changed description is another request. How long to
    wait for an answer makes no difference.
    """
    settings = {
        "temperature": request.settings.temperature,
        "top_p": request.settings.top_p,
        "max_tokens": request.settings.max_tokens,
        "seed": request.settings.seed,
        **without_secret_fields(request.settings.extra),
    }
    record = {
        "messages": [message_to_json(message) for message in request.messages],
        "tools": [{"name": tool.name, "digest": tool.digest} for tool in request.tools],
        "tool_choice": request.tool_choice,
        "output_schema": request.output_schema,
        "settings": {name: value for name, value in settings.items() if value is not None},
    }
    if request.deferred:
        record["deferred"] = [{"name": one.name, "digest": one.digest} for one in request.deferred]
    redacted: JsonObject = redact(record)
    return redacted


def read_cassette(path: Path) -> list[Recording]:
    """The recordings of a file, in order.

    Raises:
        StoreFormatError: A line is broken, or written by a newer agentkit.
    """
    with path.open(encoding="utf-8") as lines:
        return [
            _recording(line, path, number) for number, line in enumerate(lines, 1) if line.strip()
        ]


def difference(request: JsonObject, recordings: Sequence[Recording]) -> str:
    """How a request differs from the one among the recordings that is most like it."""
    wanted = _lines(request)
    likeness = [
        difflib.SequenceMatcher(None, _lines(recording.request), wanted, autojunk=False).ratio()
        for recording in recordings
    ]
    nearest = _lines(recordings[likeness.index(max(likeness))].request)
    lines = list(difflib.unified_diff(nearest, wanted, "recorded", "asked", n=1, lineterm=""))
    hidden = len(lines) - _SHOWN_LINES
    return "\n".join(lines[:_SHOWN_LINES] + ([f"... {hidden} more lines"] if hidden > 0 else []))


def _recording(line: str, path: Path, number: int) -> Recording:
    try:
        record = json.loads(line)
        version = record["format"]
        if version > FORMAT_VERSION:
            raise StoreFormatError(
                f"{path}:{number} has format {version}, this agentkit reads up to "
                f"{FORMAT_VERSION}; upgrade agentkit-evolve"
            )
        return Recording(
            request=record["request"],
            response=_response_from_json(record["response"]),
            model=record["model"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreFormatError(
            f"{path}:{number} is not a recording ({type(error).__name__}: {error}): "
            f"{line[:200]!r}. Mend the line, or delete it and record again"
        ) from error


def _response_to_json(response: ModelResponse) -> dict[str, Any]:
    return {
        "message": message_to_json(response.message),
        "usage": response.usage.to_json(),
        "finish_reason": response.finish_reason,
        "model": response.model,
        **({} if response.tokens is None else {"tokens": response.tokens.to_json()}),
    }


def _response_from_json(record: JsonObject) -> ModelResponse:
    message = message_from_json(record["message"])
    if not isinstance(message, AssistantMessage):
        raise TypeError(f"the answer is a message of the {message.role}")
    return ModelResponse(
        message=message,
        usage=Usage.from_json(record["usage"]),
        finish_reason=record["finish_reason"],
        model=record["model"],
        tokens=TokenIds.from_json(record["tokens"]) if "tokens" in record else None,
    )


def _lines(request: JsonObject) -> list[str]:
    return json.dumps(request, indent=1, ensure_ascii=False, sort_keys=True).splitlines()
