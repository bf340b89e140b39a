"""Episodes to judge, made of calls and answers."""

from __future__ import annotations

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.messages import AssistantMessage, ToolCall, ToolResult


@pytest.fixture
def call():
    """Makes a call; its id is the tool's name unless one is given."""

    def make(name, call_id="", malformed=None, **arguments):
        return ToolCall(
            call_id=call_id or name, name=name, arguments=arguments, malformed=malformed
        )

    return make


@pytest.fixture
def episode():
    """Makes an episode: one turn for each list of calls, and the answer in a turn of its own."""

    def make(*turns, answer=None, results=(), **fields):
        steps = [Turn(message=AssistantMessage(tool_calls=tuple(calls))) for calls in turns]
        if answer is not None:
            steps.append(Turn(message=AssistantMessage(text=str(answer))))
        if results:
            steps[0] = Turn(message=steps[0].message, results=tuple(results))
        return Episode(
            episode_id="1", request="Do it.", turns=tuple(steps), output=answer, **fields
        )

    return make


@pytest.fixture
def returned():
    """Makes the result of a successful call."""

    def make(name, value):
        return ToolResult(call_id=name, name=name, status="ok", value=value, text=str(value))

    return make
