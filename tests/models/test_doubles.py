"""Models for tests: driven by a function, or by a script."""

from __future__ import annotations

import asyncio

import pytest

from agentkit.errors import ModelTimeoutError, ReplayMismatchError
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ChatModel, ModelResponse, StreamingChatModel, TextDelta
from agentkit.testing import FunctionModel, ScriptedModel

CALL = ToolCall(call_id="1", name="f")


@pytest.mark.parametrize(
    ("answer", "message", "reason"),
    [
        ("hi", AssistantMessage(text="hi"), "stop"),
        ([CALL], AssistantMessage(tool_calls=(CALL,)), "tool_calls"),
        (AssistantMessage(text="a", tool_calls=(CALL,)),) * 2 + ("tool_calls",),
        (
            ModelResponse(message=AssistantMessage(text="b"), finish_reason="length"),
            AssistantMessage(text="b"),
            "length",
        ),
    ],
)
async def test_short_forms_of_an_answer(question, answer, message, reason) -> None:
    """Text, calls, a message or a response: all become a response under the model's name."""
    for model in (FunctionModel(lambda _: answer, name="n"), ScriptedModel([answer], name="n")):
        response = await model.complete(question)
        assert (response.message, response.finish_reason) == (message, reason)
        assert response.model == model.name == "n"
        assert isinstance(model, ChatModel)
        assert isinstance(model, StreamingChatModel)


async def test_function_may_be_async_and_may_raise(question) -> None:
    """A coroutine is awaited; what the function raises, the model raises."""

    async def answer(request):
        await asyncio.sleep(0)
        return f"{len(request.messages)} message"

    def fail(request):
        raise ModelTimeoutError("late")

    response = await FunctionModel(answer).complete(question)
    assert response.message.text == "1 message"
    assert response.usage == Usage(requests=1)
    with pytest.raises(ModelTimeoutError, match="late"):
        await FunctionModel(fail).complete(question)


async def test_stream_shows_word_by_word(question) -> None:
    """The pieces make up the text, white space included."""
    model = FunctionModel(lambda _: " two  words\n")
    events = [event async for event in model.stream(question)]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) == 3
    assert "".join(pieces) == events[-1].message.text == " two  words\n"


async def test_script_that_is_spent_shows_the_request(question) -> None:
    """Running out says how long the script is and what was asked."""
    model = ScriptedModel(["hi"])
    await model.complete(question)
    with pytest.raises(ReplayMismatchError, match=r"has 1 answers, but request 2 came.*'hi'"):
        await model.complete(question)
