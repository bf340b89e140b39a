"""Our own adapter for OpenAI-compatible servers, talking to our own server."""

import pytest

from agentkit import Agent
from agentkit.errors import ModelStatusError
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest, OpenAICompatibleModel, RetryPolicy, TextDelta

REQUEST = ModelRequest(messages=(UserMessage(text="Hello"),))


async def test_an_agent_can_be_the_model_of_another(make_app, served, store):
    """What one agent serves, another one uses as its model."""
    with served(make_app()) as url:
        async with OpenAICompatibleModel("agent", base_url=f"{url}/v1", api_key="") as model:
            result = await Agent(model).run("Hello")
    assert result.output == "You said: Hello"
    assert result.usage.prompt_tokens == 7
    assert [episode.request for episode in store.select()] == ["Hello"]


async def test_the_adapter_reads_our_stream(make_app, served):
    """The adapter's stream ends with the whole response, usage included."""
    with served(make_app()) as url:
        async with OpenAICompatibleModel("agent", base_url=f"{url}/v1", api_key="") as model:
            events = [event async for event in model.stream(REQUEST)]
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "You ",
        "said: ",
        "Hello",
    ]
    assert events[-1].message.text == "You said: Hello"
    assert events[-1].finish_reason == "stop"
    assert events[-1].usage.completion_tokens == 3


async def test_the_adapter_waits_as_the_server_says(make_app, served):
    """A request beyond the rate is tried again after ``Retry-After``."""
    from agentkit.server import ServerLimits

    waits = []

    async def note(seconds):
        waits.append(seconds)

    limits = ServerLimits(requests_per_minute=1)
    patient = RetryPolicy(attempts=2, jitter=0, sleep=note)
    with served(make_app(limits=limits)) as url:
        async with OpenAICompatibleModel(
            "agent", base_url=f"{url}/v1", api_key="", retry=patient
        ) as model:
            await model.complete(REQUEST)
            with pytest.raises(ModelStatusError, match="requests a minute"):
                await model.complete(REQUEST)
    assert len(waits) == 1
    assert 50 < waits[0] <= 60
