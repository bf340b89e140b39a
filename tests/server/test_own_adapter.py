"""Our own adapter for OpenAI-compatible servers, talking to our own server."""

from agentkit import Agent
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest, OpenAICompatibleModel, TextDelta

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
