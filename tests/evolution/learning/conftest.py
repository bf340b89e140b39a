"""Episodes in one line, and a library that touches the world."""

from __future__ import annotations

from itertools import count

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.episodes import GoalTrace, RetrievalTrace, Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.definition import Effects, Origin


def _catalogued(name, summary, *parameters, effects=None):
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
        "additionalProperties": False,
    }
    effects = effects or Effects(reads=True, writes=False)
    origin = Origin(kind="function", reference="weather_desk:tools")
    return ToolDefinition.from_schema(name, summary, schema, effects=effects, origin=origin)


@pytest.fixture
def catalogue():
    """Tools that are not in this process."""
    return [
        _catalogued("weather", "The weather in a city.", "city"),
        _catalogued("send_mail", "Send a mail.", "to", "text", effects=Effects(writes=True)),
    ]


@pytest.fixture
def learner(store, catalogue):
    """A manager of a library that holds the catalogue, at version 1."""
    manager = ToolManager(store)
    manager.register(catalogue)
    return manager


@pytest.fixture
def episode():
    """Makes an episode of calls, each a name, arguments and a result; an exception fails it."""
    numbers = count()

    def make(request, *calls, passed=True, episode_id=None, goals=(), **further):
        turns = []
        for at, (name, arguments, value) in enumerate(calls):
            call = ToolCall(call_id=str(at), name=name, arguments=arguments)
            if isinstance(value, Exception):
                failure = ToolFailure(kind="tool_error", rule=str(value))
                result = ToolResult(call_id=str(at), name=name, status="failed", failure=failure)
            else:
                result = ToolResult(call_id=str(at), name=name, status="ok", value=value)
            turns.append(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)))
        turns.append(Turn(message=AssistantMessage(text="Done."), retrieval=_trace(request, goals)))
        return Episode(
            episode_id=episode_id or f"made-{next(numbers):03}",
            request=request,
            turns=tuple(turns),
            verdict=None if passed is None else Verdict(passed=passed),
            **further,
        )

    return make


def _trace(request, goals):
    steps = tuple(GoalTrace(intent=intent, ranked=tuple(ranked)) for intent, ranked in goals)
    return RetrievalTrace(query=request, shortlist=(), offered=(), goals=steps) if steps else None
