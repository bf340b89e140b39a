"""Models for tests: driven by a function, by a script, or by a cassette."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.errors import ModelTimeoutError, ReplayMismatchError, StoreFormatError, UsageError
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, Usage, UserMessage
from agentkit.models.base import (
    ChatModel,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    StreamingChatModel,
    TextDelta,
)
from agentkit.testing import FunctionModel, ReplayModel, ScriptedModel
from agentkit.tools.definition import ToolDefinition


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """Where a cassette will be; its folder does not exist yet."""
    return tmp_path / "cassettes" / "one.jsonl"


def asking(text: str, **fields: object) -> ModelRequest:
    """A request with this question."""
    return ModelRequest(messages=(UserMessage(text=text),), **fields)


async def test_record_and_replay(cassette) -> None:
    """What was recorded comes back whole: text, calls, usage, finish reason and name."""
    call = ToolCall(call_id="1", name="f", arguments={"x": [1, "ü"]})
    inner = ScriptedModel([call_answer := [call], "done"], name="inner")
    live = ReplayModel(cassette, inner, mode="record")
    first = await live.complete(asking("one"))
    second = await live.complete(asking("two"))
    replayed = ReplayModel(cassette)
    assert replayed.name == "inner"
    assert await replayed.complete(asking("two")) == second
    assert await replayed.complete(asking("one")) == first
    assert list(first.message.tool_calls) == call_answer


async def test_cassette_is_readable(cassette) -> None:
    """One JSON object a line, with the question, the tools' names and the answer in it."""
    tool = ToolDefinition.from_schema("f", "Does.", {"type": "object"})
    live = ReplayModel(cassette, ScriptedModel(["größer"]), mode="record")
    await live.complete(asking("one", tools=(tool,), settings=ModelSettings(seed=3)))
    text = cassette.read_text(encoding="utf-8")
    record = json.loads(text)
    assert text.endswith("}\n")
    assert "größer" in text
    assert record["request"]["tools"] == [{"name": "f", "digest": tool.digest}]
    assert record["request"]["settings"] == {"seed": 3}
    assert record["response"]["message"]["text"] == "größer"


async def test_answers_to_one_request_come_in_order(cassette) -> None:
    """A question that was asked three times has three answers, then the first again."""
    live = ReplayModel(cassette, ScriptedModel(["a", "b", "c"]), mode="record")
    for _ in range(3):
        await live.complete(asking("one"))
    replayed = ReplayModel(cassette)
    texts = [(await replayed.complete(asking("one"))).message.text for _ in range(4)]
    assert texts == ["a", "b", "c", "a"]


async def test_auto_asks_only_what_the_cassette_lacks(cassette) -> None:
    """Known requests are replayed; new ones are asked as often as they come, and appended."""
    await ReplayModel(cassette, ScriptedModel(["a"]), mode="record").complete(asking("one"))
    before = cassette.read_bytes()
    inner = ScriptedModel(["b", "c"])
    live = ReplayModel(cassette, inner, mode="auto")
    texts = [
        (await live.complete(asking(question))).message.text
        for question in ("one", "two", "one", "two")
    ]
    assert texts == ["a", "b", "a", "c"]
    assert len(inner.requests) == 2
    assert cassette.read_bytes().startswith(before)


async def test_mismatch_shows_the_nearest_request(cassette) -> None:
    """The message shows what changed since the recording, as a difference."""
    live = ReplayModel(cassette, ScriptedModel(["a", "b"]), mode="record")
    await live.complete(asking("What is the weather in Paris?"))
    await live.complete(asking("Tell me a joke."))
    with pytest.raises(ReplayMismatchError) as caught:
        await ReplayModel(cassette).complete(asking("What is the weather in Rome?"))
    assert '-   "text": "What is the weather in Paris?"' in str(caught.value)
    assert '+   "text": "What is the weather in Rome?"' in str(caught.value)
    assert "joke" not in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": (SystemMessage(text="Be brief."), UserMessage(text="one"))},
        {"tools": (ToolDefinition.from_schema("f", "Does.", {"type": "object"}),)},
        {"tool_choice": "required"},
        {"output_schema": {"type": "object"}},
        {"settings": ModelSettings(temperature=0.5)},
        {"settings": ModelSettings(extra={"top_k": 1})},
    ],
)
async def test_what_makes_another_request(cassette, changed) -> None:
    """A request with other messages, tools, choices or settings has no answer here."""
    await ReplayModel(cassette, ScriptedModel(["a"]), mode="record").complete(asking("one"))
    with pytest.raises(ReplayMismatchError):
        await ReplayModel(cassette).complete(replace(asking("one"), **changed))


async def test_secrets_are_never_written(cassette, monkeypatch) -> None:
    """Keys in prompts, settings and answers are blotted out, and the replay still matches."""
    monkeypatch.setenv("OPENAI_API_KEY", "value-of-the-variable")
    secrets = [
        "value-of-the-variable",
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz12",
        "AKIAABCDEFGHIJKLMNOP",
        "hunter2",
        "in-a-header",
        "as-a-setting",
        "Zm9vYmFyYmF6cXV4",
    ]
    settings = ModelSettings(
        extra={"extra_headers": {"Authorization": "in-a-header"}, "api_key": "as-a-setting"}
    )
    request = asking(f"I have {secrets[:5]} and Bearer {secrets[-1]}", settings=settings)
    inner = FunctionModel(lambda received: received.messages[0].text)
    live = ReplayModel(cassette, inner, mode="record", secrets=["hunter2"])
    assert "hunter2" in (await live.complete(request)).message.text
    written = cassette.read_text(encoding="utf-8")
    assert [secret for secret in secrets if secret in written] == []
    replayed = await ReplayModel(cassette, secrets=["hunter2"]).complete(request)
    assert "<redacted>" in replayed.message.text


async def test_streams_are_recorded_and_replayed(cassette) -> None:
    """A stream goes through while it is recorded, and is replayed word by word."""
    live = ReplayModel(cassette, ScriptedModel(["one two"]), mode="record")
    recorded = [event async for event in live.stream(asking("one"))]
    replayed = [event async for event in ReplayModel(cassette).stream(asking("one"))]
    assert recorded == replayed
    assert replayed[0] == TextDelta(text="one ")
    assert isinstance(replayed[-1], ModelResponse)


def test_misuse(cassette) -> None:
    """A cassette that is not there, or a recording without a model, is refused at once."""
    with pytest.raises(UsageError, match=r"no cassette .*; record it once"):
        ReplayModel(cassette)
    for mode in ("record", "auto"):
        with pytest.raises(UsageError, match="needs a model to record"):
            ReplayModel(cassette, mode=mode)


@pytest.mark.parametrize(
    "line",
    [
        "{oops",
        "{}",
        "[]",
        '{"format": 99}',
        '{"format": 1, "request": {}, "model": "m", "response": {"message": {"role": "user"}}}',
    ],
)
async def test_broken_cassette(cassette, line) -> None:
    """A broken line is named, and the file is left alone."""
    await ReplayModel(cassette, ScriptedModel(["a"]), mode="record").complete(asking("one"))
    with cassette.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    before = cassette.read_bytes()
    with pytest.raises(StoreFormatError, match=r"one\.jsonl:2"):
        ReplayModel(cassette)
    assert cassette.read_bytes() == before


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
