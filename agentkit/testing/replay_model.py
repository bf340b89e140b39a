"""Secrets are blotted out before anything is written."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentkit.episodes.redaction.secrets import KEY_FORMATS
from agentkit.errors import ReplayMismatchError, StoreFormatError, UsageError
from agentkit.evolution.usage import SECRET_FIELD
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    TokenIds,
    Usage,
    message_from_json,
    message_to_json,
)
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
)
from agentkit.testing.scripted_models import as_events
from agentkit.tools.canonical import digest

REDACTED = "<redacted>"
"""Stands where a secret was."""

_SECRET_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET = 8


def environment_secrets() -> list[str]:
    """The values of variables whose names end in _API_KEY, _TOKEN, _SECRET or _PASSWORD."""
    return [
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_SECRET
    ]


def redactor(secrets: Iterable[str] = ()) -> Callable[[Any], Any]:
    """A function that blots out secrets in JSON data, however deep they lie.

    Args:
        secrets: Texts to blot out, beside everything that has the format of a well-known key.

    Example:
        >>> redactor(["hunter2"])({"text": "my password is hunter2", "n": 1})
        {'text': 'my password is <redacted>', 'n': 1}
    """
    known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            for secret in known:
                value = value.replace(secret, REDACTED)
            return KEY_FORMATS.sub(REDACTED, value)
        if isinstance(value, Mapping):
            return {redact(key): redact(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [redact(item) for item in value]
        return value

    return redact


def without_secret_fields(value: Any) -> Any:
    """JSON data in which fields that are named like secrets hold none.

    Example:
        >>> without_secret_fields({"extra_headers": {"Authorization": "x", "X-Team": "a"}})
        {'extra_headers': {'Authorization': '<redacted>', 'X-Team': 'a'}}
    """
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if SECRET_FIELD.search(key) and isinstance(item, str)
            else without_secret_fields(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secret_fields(item) for item in value]
    return value


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


ReplayMode = Literal["replay", "record", "auto"]


class ReplayModel:
    """Answers from a cassette, or asks another model and records what it answers.

    A request is recognised by its messages, tools, tool choice, output schema and settings. One
    that was recorded several times (self-consistency asks so) gives its answers in the order of
    recording, then starts over. A cassette is only ever appended to; delete it to record afresh.

    Secrets are not written: texts in the format of well-known keys, the values of variables such
    as ``OPENAI_API_KEY``, settings that are named like secrets, and ``secrets`` are blotted out
    in requests and answers. The server's address and headers are no part of a request.

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
        self._redact = redactor([*secrets, *environment_secrets()])
        if mode != "replay" and inner is None:
            raise UsageError(f"mode={mode!r} needs a model to record: ReplayModel(path, model)")
        if mode == "replay" and not self._path.exists():
            raise UsageError(
                f"there is no cassette {str(self._path)!r} to replay; record it once with "
                "ReplayModel(path, model, mode='record')"
            )
        self._recordings = read_cassette(self._path) if self._path.exists() else []
        self._answers: dict[str, list[ModelResponse]] = {}
        for recording in self._recordings:
            self._answers.setdefault(recording.digest, []).append(recording.response)
        self._asked: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        if self._inner is not None:
            return self._inner.name
        return self._recordings[0].model if self._recordings else "replay"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The recorded answer, or a new one that is recorded.

        Raises:
            ReplayMismatchError: The cassette holds no answer; the message shows how the nearest
                recorded request differs.
            ModelError: The recorded model could not answer; that is not recorded.
        """
        key = request_to_json(request, self._redact)
        recorded = self._recorded(key)
        if recorded is not None:
            return recorded
        response = await self._source.complete(request)
        self._record(key, response)
        return response

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The same as a stream: word by word from the cassette, as it comes from a model.

        Raises:
            ModelError: As ``complete``.
        """
        key = request_to_json(request, self._redact)
        response = self._recorded(key)
        if response is None and isinstance(self._source, StreamingChatModel):
            async for event in self._source.stream(request):
                if isinstance(event, ModelResponse):
                    self._record(key, event)
                yield event
            return
        if response is None:
            response = await self._source.complete(request)
            self._record(key, response)
        for event in as_events(response):
            yield event

    async def close(self) -> None:
        """Close the recorded model, if it can be closed."""
        close = getattr(self._inner, "close", None)
        closing = None if close is None else close()
        if inspect.isawaitable(closing):
            await closing

    @property
    def _source(self) -> ChatModel:
        assert self._inner is not None
        return self._inner

    def _recorded(self, key: JsonObject) -> ModelResponse | None:
        """The next recorded answer; None when the model has to be asked."""
        if self._mode == "record":
            return None
        found = digest(key)
        answers = self._answers.get(found)
        if answers:
            self._asked[found] += 1
            return answers[(self._asked[found] - 1) % len(answers)]
        if self._mode == "auto":
            return None
        detail = "It is empty"
        if self._recordings:
            detail = f"The nearest recorded request differs:\n{difference(key, self._recordings)}"
        raise ReplayMismatchError(
            f"{str(self._path)!r} holds no answer for this request. {detail}\n"
            "Record again (mode='auto' adds what is missing), or undo the change"
        )

    def _record(self, key: JsonObject, response: ModelResponse) -> None:
        recording = Recording(request=key, response=response, model=self.name)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:  # one write, so lines stay whole
            file.write(recording.to_line(self._redact))
