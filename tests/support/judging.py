"""Fixtures for what is judged: calls, episodes, files of tasks and the tools that these offer."""

from __future__ import annotations

import json

import pytest

from agentkit import Tool, ToolDefinition, tool
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
            text = answer if isinstance(answer, str) else ""
            steps.append(Turn(message=AssistantMessage(text=text)))
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


@tool
def add(a: int, b: float = 1) -> float:
    """Add two numbers.

    Args:
        a: One.
        b: Another.
    """
    return a + b


BOOK = Tool(
    definition=ToolDefinition.from_schema(
        "book_table",
        "Book a table.",
        {
            "type": "object",
            "properties": {"day": {"enum": ["sat", "sun"]}, "guests": {"type": "integer"}},
            "required": ["day"],
        },
    )
)


@pytest.fixture
def tools():
    """A bound tool and an unbound one."""
    return [add, BOOK]


@pytest.fixture
def write(tmp_path):
    """Writes rows to a file: objects as JSON, texts and bytes as they are."""

    def written(*rows, name="tasks.jsonl"):
        path = tmp_path / name
        lines = [
            row
            if isinstance(row, bytes)
            else row.encode()
            if isinstance(row, str)
            else json.dumps(row).encode()
            for row in rows
        ]
        path.write_bytes(b"\n".join(lines) + b"\n")
        return path

    return written


@pytest.fixture
def row():
    """A row that is fine but for what the test says."""

    def made(**fields):
        return {"id": "t", "request": "What is 2 + 2?", "expects": {"number": 4}, **fields}

    return made
