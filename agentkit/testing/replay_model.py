"""``ReplayModel``: record a model once, replay it without network ever after."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Literal

from agentkit.errors import ReplayMismatchError, UsageError
from agentkit.messages import JsonObject
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
)
from agentkit.testing.cassette import Recording, difference, read_cassette, request_to_json
from agentkit.testing.function_model import as_events
from agentkit.testing.redaction import environment_secrets, redactor
from agentkit.tools.canonical import digest

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
