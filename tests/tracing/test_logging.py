"""The same as lines of Python's logging."""

from __future__ import annotations

import asyncio
import logging

import pytest

from agentkit import Agent, tool
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


def test_content_is_in_the_record_when_asked_for(caplog) -> None:
    """The text of the line stays without."""
    tracer = Tracing(log=LOG, content=ContentPolicy())
    with caplog.at_level(logging.INFO, logger="agentkit.trace"):
        Agent(ScriptedModel(["It is a wombat."]), tracing=tracer).run_sync("What?")
    (record,) = caplog.records
    assert "wombat" in record.agentkit["gen_ai.output.messages"]
    assert "wombat" not in record.getMessage()
