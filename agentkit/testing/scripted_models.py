"""``FunctionModel``: a model driven by a Python function."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from agentkit.errors import ReplayMismatchError
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ANY_MEDIA, ModelEvent, ModelRequest, ModelResponse, TextDelta

Answer: TypeAlias = str | Sequence[ToolCall] | AssistantMessage | ModelResponse
"""Possible answers of a function: text, calls, a message, or a whole response."""


class FunctionModel:
    """Answers each request with what a function returns for it. Streams, too.

    Args:
        function: Sync or async; gets the request. What it raises is raised by the model.
        name: The model's name, for records.

    Attributes:
        requests: Every request so far, in order.

    Example:
        >>> import asyncio
        >>> from agentkit.messages import UserMessage
        >>> shouting = FunctionModel(lambda request: request.messages[-1].text.upper())
        >>> request = ModelRequest(messages=(UserMessage(text="hello"),))
        >>> asyncio.run(shouting.complete(request)).message.text
        'HELLO'
    """

    def __init__(
        self,
        function: Callable[[ModelRequest], Answer | Awaitable[Answer]],
        *,
        name: str = "function",
    ) -> None:
        self._function = function
        self._name = name
        self.requests: list[ModelRequest] = []

    reports_cost = True
    """What answers cost is what the function says of their usage."""

    accepts = ANY_MEDIA
    """The function gets all media."""

    @property
    def name(self) -> str:
        """The model's name, for records."""
        return self._name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The function's answer to ``request``, as a response."""
        self.requests.append(request)
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        return replace(as_response(answer), model=self._name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The same answer, its text word by word."""
        for event in as_events(await self.complete(request)):
            yield event


def as_response(answer: Answer) -> ModelResponse:
    """An answer in its short form as a whole response; it counts as one request."""
    if isinstance(answer, ModelResponse):
        return answer
    if isinstance(answer, str):
        answer = AssistantMessage(text=answer)
    elif not isinstance(answer, AssistantMessage):
        answer = AssistantMessage(tool_calls=tuple(answer))
    return ModelResponse(
        message=answer,
        usage=Usage(requests=1),
        finish_reason="tool_calls" if answer.tool_calls else "stop",
    )


def as_events(response: ModelResponse) -> Iterator[ModelEvent]:
    """A response as a stream: its text word by word, then the whole."""
    for piece in re.findall(r"\S+\s*|\s+", response.message.text):
        yield TextDelta(text=piece)
    yield response


class ScriptedModel(FunctionModel):
    """Returns prepared answers in order, whatever it is asked.

    Args:
        answers: Text, calls, messages, responses, or exceptions to raise.
        name: The model's name, for records.

    Attributes:
        requests: Every request so far, in order.

    Raises:
        ReplayMismatchError: The script has run out; the message shows the last request.

    Example:
        >>> import asyncio
        >>> from agentkit.messages import UserMessage
        >>> model = ScriptedModel(["Hello.", "Goodbye."])
        >>> request = ModelRequest(messages=(UserMessage(text="Hi"),))
        >>> asyncio.run(model.complete(request)).message.text
        'Hello.'
    """

    def __init__(
        self, answers: Iterable[Answer | BaseException] = (), *, name: str = "scripted"
    ) -> None:
        self._answers = list(answers)
        super().__init__(self._next, name=name)

    def _next(self, request: ModelRequest) -> Answer:
        position = len(self.requests) - 1
        if position >= len(self._answers):
            last = request.messages[-1].text if request.messages else ""
            raise ReplayMismatchError(
                f"the script of {self.name!r} has {len(self._answers)} answers, but request "
                f"{position + 1} came, ending in {last[:200]!r}; add an answer, or look why the "
                "run goes on"
            )
        answer = self._answers[position]
        if isinstance(answer, BaseException):
            raise answer
        return answer
