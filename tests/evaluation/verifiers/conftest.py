"""Episodes to judge, made of calls and answers."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

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


@pytest.fixture
def corpus_rows(project_root):
    """Reads the problems of a public corpus; skips the test when the corpus is not there."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))

    def rows(name):
        path = root / name / "problems.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return rows
