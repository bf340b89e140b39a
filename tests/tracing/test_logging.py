"""The same as lines of Python's logging."""

from __future__ import annotations

import asyncio
import logging

import pytest

from agentkit import Agent, tool
from agentkit.agent import ToolPolicy
from agentkit.errors import ModelConnectionError, RunError
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import ScriptedModel
from agentkit.tracing import ContentPolicy, Tracing

LOG = logging.getLogger("agentkit.trace")


@tool
def divide(a: float, b: float) -> float:
    """Divide."""
    return a / b


def call(b: float) -> ToolCall:
    return ToolCall(call_id="c1", name="divide", arguments={"a": 1, "b": b})


def ends(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and first words of the lines."""
    return [(one.levelname, " ".join(one.getMessage().split()[:2])) for one in caplog.records]


def test_each_operation_is_a_line_when_it_ends(caplog) -> None:
    """Runs are INFO, their parts DEBUG, failures WARNING."""
    with caplog.at_level(logging.DEBUG, logger="agentkit.trace"):
        model = ScriptedModel([[call(1)], [call(0)], "Hm."])
        Agent(model, tools=[divide], tracing=Tracing(log=LOG)).run_sync("Go.")
    assert ends(caplog) == [
        ("DEBUG", "chat scripted"),
        ("DEBUG", "execute_tool divide"),
        ("DEBUG", "chat scripted"),
        ("WARNING", "execute_tool divide"),
        ("DEBUG", "chat scripted"),
        ("INFO", "invoke_agent agent"),
    ]


def test_a_line_tells_the_most_important_facts(caplog) -> None:
    """As ``key=value`` pairs after kind and name; ``record.agentkit`` has all of them."""
    usage = Usage(requests=1, prompt_tokens=30, completion_tokens=5)
    answer = ModelResponse(message=AssistantMessage(text="Hi."), usage=usage)
    with caplog.at_level(logging.INFO, logger="agentkit.trace"):
        agent = Agent(ScriptedModel([answer]), tracing=Tracing(log=LOG))
        episode = agent.run_sync("Hi").episode
    (record,) = caplog.records
    words = record.getMessage().split()
    assert words[:2] == ["invoke_agent", "agent"]
    assert words[2].startswith("seconds=0.")
    assert words[3:] == [
        f"episode={episode.episode_id}",
        "stop=finished",
        "turns=1",
        "input_tokens=30",
        "output_tokens=5",
    ]
    assert record.agentkit["gen_ai.usage.input_tokens"] == 30


def test_lines_carry_the_episode_of_their_run(caplog) -> None:
    """Also where runs go on side by side."""
    tracer = Tracing(log=LOG)

    async def run() -> set[str]:
        agents = [
            Agent(ScriptedModel([[call(1)], "Done."]), tools=[divide], tracing=tracer)
            for _ in range(5)
        ]
        results = await asyncio.gather(*(agent.run("Go.") for agent in agents))
        return {result.episode.episode_id for result in results}

    with caplog.at_level(logging.DEBUG, logger="agentkit.trace"):
        ids = asyncio.run(run())
    told = [record.agentkit["agentkit.episode.id"] for record in caplog.records]
    assert {one: told.count(one) for one in told} == dict.fromkeys(ids, 4)


def test_a_failed_run_is_an_error(caplog) -> None:
    """It names the kind of the error and not its message."""
    agent = Agent(ScriptedModel([ModelConnectionError("secret host")]), tracing=Tracing(log=LOG))
    with caplog.at_level(logging.INFO, logger="agentkit.trace"), pytest.raises(RunError):
        agent.run_sync("Go.")
    assert ends(caplog) == [("WARNING", "chat scripted"), ("ERROR", "invoke_agent agent")]
    assert "ModelConnectionError" in caplog.text
    assert "secret host" not in caplog.text


def test_children_of_composites_are_lines(caplog, composites) -> None:
    """Those of failed composites by default, with the episode of the run."""
    asked = ToolCall(call_id="c1", name="both", arguments={"x": 0})
    model = ScriptedModel([[asked], "Done."])
    agent = Agent(
        model, library=composites, tracing=Tracing(log=LOG), tool_policy=ToolPolicy(retries=0)
    )
    with caplog.at_level(logging.DEBUG, logger="agentkit.trace"):
        episode = agent.run_sync("Go.").episode
    names = [name for _, name in ends(caplog) if name.startswith("execute_tool")]
    assert names == [f"execute_tool {name}" for name in ("half", "double", "invert", "both")]
    ids = {record.agentkit["agentkit.episode.id"] for record in caplog.records}
    assert ids == {episode.episode_id}


def test_content_is_in_the_record_when_asked_for(caplog) -> None:
    """The text of the line stays without."""
    tracer = Tracing(log=LOG, content=ContentPolicy())
    with caplog.at_level(logging.INFO, logger="agentkit.trace"):
        Agent(ScriptedModel(["It is a wombat."]), tracing=tracer).run_sync("What?")
    (record,) = caplog.records
    assert "wombat" in record.agentkit["gen_ai.output.messages"]
    assert "wombat" not in record.getMessage()


def test_names_with_spaces_and_breaks_stay_one_word(caplog) -> None:
    """A line is one line, whatever an agent is called."""
    with caplog.at_level(logging.INFO, logger="agentkit.trace"):
        Agent(ScriptedModel(["Hi."]), tracing=Tracing(log=LOG), name="my\nagent").run_sync("Hi")
    (record,) = caplog.records
    assert record.getMessage().startswith('invoke_agent "my\\nagent" seconds=')


def test_a_logger_of_ones_own_is_used(caplog) -> None:
    """Two agents can write to two places."""
    tracer = Tracing(log=logging.getLogger("my.runs"))
    with caplog.at_level(logging.INFO, logger="my.runs"):
        Agent(ScriptedModel(["Hi."]), tracing=tracer).run_sync("Hi")
    assert [record.name for record in caplog.records] == ["my.runs"]
