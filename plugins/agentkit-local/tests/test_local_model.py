"""The real model in this process: calls under a grammar, free text, stopping, closing."""

import asyncio
import json
import signal
from pathlib import Path

import jsonschema
import psutil
import pytest

from agentkit import Agent, tool
from agentkit.errors import ModelResponseError, ModelStatusError, ModelTimeoutError, UsageError
from agentkit.messages import AssistantMessage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelSettings, TextDelta
from agentkit.tools.definition import ToolDefinition
from agentkit_local import LocalModel, default_threads

pytestmark = pytest.mark.weights

WEATHER = ToolDefinition.from_schema(
    "weather.get",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "days", "unit"],
    },
)
QUESTION = UserMessage(text="What will the weather be in Oslo for the next 3 days, in celsius?")
STORY = ModelRequest(messages=(UserMessage(text="Write a long story about a dog."),))


def request(*messages, tools=(WEATHER,), **changes):
    return ModelRequest(messages=messages or (QUESTION,), tools=tools, **changes)


async def test_a_required_call_satisfies_the_schema(model):
    """The model knows no tools, and still its call is well-formed."""
    response = await model.complete(request(tool_choice="required"))
    assert isinstance(model, ChatModel)
    (call,) = response.message.tool_calls
    assert (call.name, call.malformed) == ("weather.get", None)
    jsonschema.validate(dict(call.arguments), WEATHER.signature.parameters)
    assert call.arguments["city"] == "Oslo"
    assert response.usage.completion_tokens > 0


@pytest.mark.parametrize("sign", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
async def test_no_text_ends_its_turn(model, sign):
    """A sign of the chat template in a message is letters, and no turn begins or ends by it."""
    tokens = [
        (await model.complete(request(UserMessage(text=text), tools=()))).usage.prompt_tokens
        for text in ("", sign * 30)
    ]
    assert tokens[1] - tokens[0] > 60


async def test_the_shipped_adapter_writes_calls_without_a_grammar(model):
    """Written freely, where the bare weights talk, its answer is a call with arguments."""
    free = {"constrained": False, "context_tokens": 1024, "max_tokens": 60}
    asked = request(tool_choice="required")
    with LocalModel("smollm2-135m", **free) as bare:
        assert (await bare.complete(asked)).message.tool_calls == ()
    with LocalModel("smollm2-135m", adapter="calls", **free) as adapted:
        (call,) = (await adapted.complete(asked)).message.tool_calls
    assert (call.name, call.malformed) == ("weather.get", None)
    assert (call.arguments["city"], call.arguments["days"]) == ("Oslo", 3)


async def test_the_start_of_a_prompt_is_computed_once(model):
    """A round of refinement goes on from what the engine has computed."""
    first = await model.complete(request(tool_choice="required"))
    refine = UserMessage(text="Please refine your answer.")
    shown = AssistantMessage(tool_calls=first.message.tool_calls)
    second = await model.complete(request(QUESTION, shown, refine, tool_choice="required"))
    assert second.usage.cached_tokens >= first.usage.prompt_tokens - 5


async def test_without_tools_the_model_writes_text(model):
    """Neither no tools nor tool_choice "none" constrain the answer."""
    settings = ModelSettings(max_tokens=12)
    free = await model.complete(request(tools=(), settings=settings))
    none = await model.complete(request(tool_choice="none", settings=settings))
    assert free.message == none.message
    assert free.message.text
    assert not free.message.text.startswith("{")


async def test_a_schema_holds_the_answer(model):
    """Structured output is JSON of the shape that was asked for."""
    shape = {
        "type": "object",
        "properties": {"country": {"type": "string"}, "is_capital": {"type": "boolean"}},
        "required": ["country", "is_capital"],
    }
    asked = ModelRequest(messages=(UserMessage(text="Describe Paris."),), output_schema=shape)
    response = await model.complete(asked)
    jsonschema.validate(json.loads(response.message.text), shape)


async def test_a_grammar_that_does_not_compile_is_noticed(model, engine_says):
    """llama.cpp goes on without the grammar; the caller is told instead of given prose."""
    impossible = {"type": "string", "not": {"const": "x"}}
    asked = ModelRequest(
        messages=(QUESTION,), output_schema=impossible, settings=ModelSettings(max_tokens=400)
    )
    with pytest.raises(ModelResponseError, match="not JSON although"):
        await model.engine.complete(asked)
    assert engine_says("not")


async def test_a_cancelled_request_leaves_the_model_usable(model):
    """The computation stops with the request, and the next one is answered."""
    job = asyncio.create_task(model.complete(STORY))
    await asyncio.sleep(0.3)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    settings = ModelSettings(max_tokens=3)
    assert (await model.complete(request(tools=(), settings=settings))).message.text


async def test_a_deadline_ends_a_request(model):
    """The error says how long was allowed and what to change."""
    asked = ModelRequest(messages=STORY.messages, settings=ModelSettings(timeout_seconds=0.05))
    with pytest.raises(ModelTimeoutError, match=r"within 0\.05 s"):
        await model.complete(asked)


async def test_a_request_beyond_the_context_is_refused(model):
    """The error names both numbers."""
    with pytest.raises(ModelStatusError, match="room for 1024") as caught:
        await model.complete(ModelRequest(messages=(UserMessage(text="word " * 2000),)))
    assert caught.value.status == 400


async def test_requests_wait_for_each_other_while_the_loop_goes_on(model):
    """Several requests are answered one after the other; other tasks run meanwhile."""
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    settings = ModelSettings(max_tokens=4)
    asked = request(tools=(), settings=settings)
    answers = await asyncio.gather(*(model.complete(asked) for _ in range(3)))
    ticking.cancel()
    assert len({answer.message.text for answer in answers}) == 1
    assert ticks > 2


async def test_a_second_model_uses_as_many_threads(model):
    """Loading the first one does not count as somebody else's OpenMP runtime."""
    await model.complete(request(tools=(), settings=ModelSettings(max_tokens=1)))
    assert default_threads() == model.engine.threads


async def test_tools_are_refused_by_the_bare_engine(model):
    """The engine itself writes text only, and says who helps."""
    with pytest.raises(UsageError, match="PromptedModel"):
        await model.engine.complete(request())


def test_nothing_outside_the_process_can_reach_the_model(model):
    """No port is open, and the socket that llama.cpp insists on has no name any more."""
    asyncio.run(model.complete(request(tools=(), settings=ModelSettings(max_tokens=1))))
    connections = psutil.Process().net_connections(kind="all")
    listening = [c for c in connections if c.status == psutil.CONN_LISTEN]
    paths = [c.laddr for c in connections if isinstance(c.laddr, str) and "agentkit-" in c.laddr]
    assert listening == []
    assert paths
    assert not any(Path(path).exists() for path in paths)


def test_an_interrupt_still_reaches_python(model):
    """llama.cpp's server does not take Ctrl-C away from the program."""
    asyncio.run(model.complete(request(tools=(), settings=ModelSettings(max_tokens=1))))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


async def test_nothing_is_printed(model, capfd):
    """Loading and answering leave stdout and stderr alone."""
    with LocalModel("smollm2-135m", context_tokens=512, threads=1) as other:
        await other.complete(request(tools=(), settings=ModelSettings(max_tokens=2)))
    assert capfd.readouterr() == ("", "")


async def test_an_agent_runs_on_it(model):
    """A tool of the program is called with what the model chose."""
    seen = []

    @tool
    def set_alarm(hour: int) -> str:
        """Set an alarm.

        Args:
            hour: Hour of the day, 0 to 23.
        """
        seen.append(hour)
        return f"alarm set for {hour}:00"

    agent = Agent(model, tools=[set_alarm], settings=ModelSettings(max_tokens=40))
    result = await agent.run("Set an alarm for 7 o'clock.")
    assert seen
    assert seen[0] == 7
    assert result.episode.usage.completion_tokens > 0


async def test_an_answer_is_shown_while_it_is_computed(model):
    """Pieces of text come one by one, and together they are the answer."""
    settings = ModelSettings(max_tokens=12)
    asked = request(tools=(), settings=settings)
    events = [event async for event in model.stream(asked)]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 5
    assert events[-1].message == (await model.complete(asked)).message
    assert "".join(pieces) == events[-1].message.text


async def test_a_stream_that_is_left_stops_the_computation(model):
    """The next request does not wait for the story to end."""
    stream = model.engine.stream(STORY)
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    settings = ModelSettings(max_tokens=3)
    assert (await model.complete(request(tools=(), settings=settings))).message.text


async def test_a_streamed_call_shows_no_text(model):
    """Of a call held by a grammar only the whole response is seen."""
    events = [event async for event in model.stream(request(tool_choice="required"))]
    (response,) = events
    assert response.message.tool_calls[0].name == "weather.get"


async def test_errors_of_a_stream_are_those_of_an_answer(model):
    """A deadline, and tools given to the bare engine, are named."""
    asked = ModelRequest(messages=STORY.messages, settings=ModelSettings(timeout_seconds=0.05))
    with pytest.raises(ModelTimeoutError, match=r"within 0\.05 s"):
        _ = [event async for event in model.stream(asked)]
    with pytest.raises(UsageError, match="wrap the engine"):
        _ = [event async for event in model.engine.stream(request())]
