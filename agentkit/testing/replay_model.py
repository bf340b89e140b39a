"""``ReplayModel``: another model's answers, recorded once and replayed without network.

A cassette is JSON lines, one request and its answer each. Secrets are blotted out before anything
is written.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Set as AbstractSet
from pathlib import Path
from typing import Any, Literal

from agentkit.episodes.secrets import KEY_FORMATS
from agentkit.errors import ReplayMismatchError, StoreFormatError, UsageError
from agentkit.evolution.learning import SECRET_FIELD
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    TokenIds,
    Usage,
    message_from_json,
    message_to_json,
)
from agentkit.models.base import (
    ANY_MEDIA,
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    accepted_media,
)
from agentkit.testing.scripted_models import as_events
from agentkit.tools.canonical import digest

REDACTED = "<redacted>"
"""Placeholder for a secret."""

FORMAT_VERSION = 1
"""Version of a line's form."""

_SECRET_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET = 8
_SHOWN_LINES = 40

ReplayMode = Literal["replay", "record", "auto"]


class ReplayModel:
    """Answers from a cassette, or asks another model and records what it answers.

    A request is recognised by its messages, tools, tool choice, output schema and settings. One
    that was recorded several times (self-consistency asks so) gives its answers in the order of
    recording, then starts over. A cassette is only ever appended to; delete it to record afresh.

    Secrets are not written: texts in the format of well-known keys, the values of variables such
    as ``OPENAI_API_KEY``, settings that are named like secrets, and ``secrets`` are blotted out
    in requests and answers. The server's address and headers are not part of a request.

    Args:
        path: The cassette, JSON lines; ``tests/cassettes/weather.jsonl``, say.
        inner: The model to record; not needed to replay.
        mode: ``replay`` answers from the cassette alone; ``record`` always asks; ``auto`` asks
            about requests that the cassette did not hold when it was opened.
        secrets: Further texts that must not be written.

    Raises:
        UsageError: There is no cassette to replay, or no model to record.
        StoreFormatError: The cassette is broken, or written by a newer agentkit.

    Example:
        >>> import asyncio
        >>> from agentkit.messages import UserMessage
        >>> from agentkit.testing import ScriptedModel
        >>> request = ModelRequest(messages=(UserMessage(text="hi"),))
        >>> live = ReplayModel("hello.jsonl", ScriptedModel(["hello"]), mode="record")
        >>> asyncio.run(live.complete(request)).message.text
        'hello'
        >>> asyncio.run(ReplayModel("hello.jsonl").complete(request)).message.text
        'hello'
    """

    def __init__(
        self,
        path: str | Path,
        inner: ChatModel | None = None,
        mode: ReplayMode = "replay",
        *,
        secrets: Iterable[str] = (),
    ) -> None:
        self._path = Path(path)
        self._inner = inner
        self._mode = mode
        self._secrets = sorted({*filter(None, secrets), *_environment_secrets()}, key=len)[::-1]
        if mode != "replay" and inner is None:
            raise UsageError(f"mode={mode!r} needs a model to record: ReplayModel(path, model)")
        if mode == "replay" and not self._path.exists():
            raise UsageError(
                f"there is no cassette {str(self._path)!r} to replay; record it once with "
                "ReplayModel(path, model, mode='record')"
            )
        self._name = "replay"
        self._requests: list[JsonObject] = []
        self._answers: dict[str, list[ModelResponse]] = {}
        self._asked: Counter[str] = Counter()
        self._read()

    reports_cost = True
    """The recorded usage includes the cost."""

    @property
    def accepts(self) -> AbstractSet[str]:
        """What the recorded model accepts beside text; everything without one."""
        return ANY_MEDIA if self._inner is None else accepted_media(self._inner)

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._name if self._inner is None else self._inner.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The recorded answer, or a new one that is recorded.

        Raises:
            ReplayMismatchError: The cassette holds no answer; the message shows how the nearest
                recorded request differs.
            ModelError: The recorded model could not answer; that is not recorded.
        """
        key = self._redacted(_request_to_json(request))
        answers = self._answers.get(digest(key))
        if answers and self._mode != "record":
            self._asked[digest(key)] += 1
            return answers[(self._asked[digest(key)] - 1) % len(answers)]
        if self._inner is None:
            raise ReplayMismatchError(
                f"{str(self._path)!r} holds no answer for this request. {self._difference(key)}\n"
                "Record again (mode='auto' adds what is missing), or undo the change"
            )
        response = await self._inner.complete(request)
        self._record(key, response)
        return response

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The same answer word by word.

        Raises:
            ModelError: As ``complete``.
        """
        for event in as_events(await self.complete(request)):
            yield event

    async def close(self) -> None:
        """Close the recorded model, if it can be closed."""
        if close := getattr(self._inner, "close", None):
            await close()

    def _read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    self._read_line(line, f"{self._path}:{number}")

    def _read_line(self, line: str, place: str) -> None:
        try:
            record = json.loads(line)
            if record["format"] > FORMAT_VERSION:
                raise StoreFormatError(
                    f"{place} has format {record['format']}, this agentkit reads up to "
                    f"{FORMAT_VERSION}; upgrade agentkit-evolve"
                )
            request, response = record["request"], _response_from_json(record["response"])
            self._name = record["model"] if not self._requests else self._name
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreFormatError(
                f"{place} is not a recording ({type(error).__name__}: {error}): {line[:200]!r}. "
                "Mend the line, or delete it and record again"
            ) from error
        self._requests.append(request)
        self._answers.setdefault(digest(request), []).append(response)

    def _record(self, key: JsonObject, response: ModelResponse) -> None:
        record = {
            "format": FORMAT_VERSION,
            "digest": digest(key),
            "model": self.name,
            "request": key,
            "response": self._redacted(_response_to_json(response)),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:  # one write, so lines stay whole
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _redacted(self, value: Any) -> Any:
        """JSON data without secrets, however deep they lie."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, REDACTED)
            return KEY_FORMATS.sub(REDACTED, value)
        if isinstance(value, Mapping):
            return {self._redacted(key): self._redacted(item) for key, item in value.items()}
        return [self._redacted(item) for item in value] if isinstance(value, list) else value

    def _difference(self, request: JsonObject) -> str:
        """The difference between a request and the most similar recorded one."""
        if not self._requests:
            return "It is empty"
        own, known = _lines(request), [_lines(recorded) for recorded in self._requests]
        matcher = difflib.SequenceMatcher(b=own, autojunk=False)

        def likeness(lines: list[str]) -> float:
            matcher.set_seq1(lines)
            return matcher.ratio()

        nearest = max(known, key=likeness)
        lines = list(difflib.unified_diff(nearest, own, "recorded", "asked", n=1, lineterm=""))
        more = len(lines) - _SHOWN_LINES
        shown = lines[:_SHOWN_LINES] + ([f"... {more} more lines"] if more > 0 else [])
        return "The nearest recorded request differs:\n" + "\n".join(shown)


def _environment_secrets() -> list[str]:
    """The values of variables whose names end in _API_KEY, _TOKEN, _SECRET or _PASSWORD."""
    return [
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_SECRET
    ]


def _without_secret_fields(value: Any) -> Any:
    """JSON data in which fields that are named like secrets hold none."""
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if SECRET_FIELD.search(key) and isinstance(item, str)
            else _without_secret_fields(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_secret_fields(item) for item in value]
    return value


def _request_to_json(request: ModelRequest) -> dict[str, Any]:
    """The key of a request, in readable form.

    Tools are their names and digests, so a changed description is another request. How long to
    wait for an answer makes no difference.
    """
    settings = {
        "temperature": request.settings.temperature,
        "top_p": request.settings.top_p,
        "max_tokens": request.settings.max_tokens,
        "seed": request.settings.seed,
        **_without_secret_fields(request.settings.extra),
    }
    return {
        "messages": [message_to_json(message) for message in request.messages],
        "tools": [{"name": tool.name, "digest": tool.digest} for tool in request.tools],
        "tool_choice": request.tool_choice,
        "output_schema": request.output_schema,
        "settings": {name: value for name, value in settings.items() if value is not None},
    }


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
