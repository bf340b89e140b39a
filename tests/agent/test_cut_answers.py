"""An answer that a provider cut short is told from one that the model ended."""

import pytest

from agentkit import Agent, tool
from agentkit.agent import RefineSettings
from agentkit.episodes import Episode, Turn
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelResponse
from agentkit.testing import ScriptedModel


def answer(reason, text="The answer is", calls=()):
    """What a model says, and why it stopped."""
    message = AssistantMessage(text=text, tool_calls=calls)
    return ModelResponse(message=message, finish_reason=reason)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_the_turn_says_why(reason):
    """The run ends as ever; its last turn, and the record that is kept, say what cut it."""
    episode = (await Agent(ScriptedModel([answer(reason)])).run("Hi")).episode
    assert (episode.stop_reason, episode.output) == ("finished", "The answer is")
    assert episode.turns[-1].finish_reason == reason
    record = episode.to_json()
    assert (record["format"], record["turns"][0]["finish_reason"]) == (3, reason)
    assert Episode.from_json(record) == episode


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "unknown"])
async def test_nothing_is_written_of_answers_that_the_model_ended(reason):
    """What follows from the answer itself is not recorded, so older programs read the episode."""
    episode = (await Agent(ScriptedModel([answer(reason)])).run("Hi")).episode
    assert episode.turns == (
        Turn(
            message=AssistantMessage(text="The answer is"),
            usage=episode.turns[0].usage,
            seconds=episode.turns[0].seconds,
            model_seconds=episode.turns[0].model_seconds,
        ),
    )
    record = episode.to_json()
    assert record["format"] == 1
    assert "finish_reason" not in record["turns"][0]


async def test_a_refined_turn_has_the_reason_of_the_round_that_is_run():
    """Whether calls may be incomplete depends on who wrote them."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def calls(b):
        return (ToolCall(call_id="c", name="add", arguments={"a": 1, "b": b}),)

    first, refined = answer("stop", calls=calls(2)), answer("length", calls=calls(3))
    agent = Agent(
        ScriptedModel([first, refined, "4"]),
        tools=[add],
        refine=RefineSettings(mode="vanilla", max_refinements=1),
    )
    turns = (await agent.run("1 + 3?")).episode.turns
    assert [turn.finish_reason for turn in turns] == ["length", None]
