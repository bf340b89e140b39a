"""``ScriptedModel``: a model that gives prepared answers, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.errors import ReplayMismatchError
from agentkit.models.base import ModelRequest
from agentkit.testing.function_model import Answer, FunctionModel


class ScriptedModel(FunctionModel):
    """Gives prepared answers in order, whatever it is asked.

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
