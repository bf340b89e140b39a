"""A run goes from the request to the answer, one turn after the other."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.agent import ToolPolicy
from agentkit.errors import UsageError
from agentkit.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from agentkit.testing import ScriptedModel


async def test_call_then_answer(add, call):
    """A call is executed and its result shown to the model, which then answers."""
    model = ScriptedModel([[call("add", a=1, b=2)], "It is 3."])

    result = await Agent(model, tools=[add]).run("1 + 2?")

    assert result.output == "It is 3."
    assert [r.value for r in result.episode.results] == [3]
    assert model.requests[1].messages[-1] == ToolMessage(call_id="add", name="add", text="3")


async def test_instructions_come_first_and_are_not_part_of_the_conversation():
    """The system message leads each request but is left out of the messages that are kept."""
    model = ScriptedModel(["a"])

    result = await Agent(model, instructions="Be brief.").run("Hi")

    assert model.requests[0].messages == (SystemMessage(text="Be brief."), UserMessage(text="Hi"))
    assert result.messages == (UserMessage(text="Hi"), AssistantMessage(text="a"))


async def test_history_goes_before_the_request():
    """The messages of one result are the history of the next run."""
    model = ScriptedModel(["a", "b"])
    agent = Agent(model)

    first = await agent.run("one")
    second = await agent.run("two", history=first.messages)

    assert [m.text for m in model.requests[1].messages] == ["one", "a", "two"]
    assert second.episode.history_length == 2


async def test_plain_functions_become_tools(call):
    """A function without the decorator is offered under its own name."""

    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    model = ScriptedModel([[call("shout", text="hey")], "done"])
    result = await Agent(model, tools=[shout]).run("go")

    assert result.episode.results[0].value == "HEY"


async def test_the_same_tools_tuple_is_offered_each_turn(add, call):
    """Adapters may key a cache on the identity of the offered tools."""
    model = ScriptedModel([[call("add", a=1, b=2)], "3", "hello"])
    agent = Agent(model, tools=[add])

    await agent.run("1 + 2?")
    await agent.run("hi")

    assert len({id(request.tools) for request in model.requests}) == 1


async def test_a_forced_call_is_forced_once(add, call):
    """With tool_choice="required" the model must call first and may answer afterwards."""
    model = ScriptedModel([[call("add", a=1, b=2)], "3"])

    await Agent(model, tools=[add], tool_policy=ToolPolicy(choice="required")).run("1 + 2?")

    assert [request.tool_choice for request in model.requests] == ["required", "auto"]


def test_run_sync_answers_without_a_loop():
    """run_sync is run for callers that have no event loop."""
    assert Agent(ScriptedModel(["Hello."])).run_sync("Hi").output == "Hello."


async def test_run_sync_inside_a_loop_says_what_to_do():
    """Blocking a running loop is refused with the way out."""
    with pytest.raises(UsageError, match=r"await agent\.run"):
        Agent(ScriptedModel(["Hello."])).run_sync("Hi")


async def test_metadata_is_kept_with_the_episode():
    """The caller's labels travel into the record."""
    result = await Agent(ScriptedModel(["a"])).run("Hi", metadata={"user": "42"})

    assert result.episode.metadata == {"user": "42"}
