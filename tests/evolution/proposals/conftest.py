"""A loan calculator as in ToolDNA's case studies, and episodes in which it was called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.episodes import episode_of

from agentkit import Episode, Library, ToolDefinition
from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposers.blocks import Question
from agentkit.library.events import Author
from agentkit.tools.definition import Example


@pytest.fixture
def loan() -> ToolDefinition:
    """The loan calculator; its text lists the terms in passing."""
    return ToolDefinition.from_schema(
        "calculate_loan",
        "What a loan costs a month.",
        {
            "type": "object",
            "properties": {
                "total_price": {"type": "number", "description": "Price in units of 10,000."},
                "periods": {"type": "integer", "description": "Loan term."},
                "note": {"type": "string"},
            },
            "required": ["total_price", "periods"],
        },
    )


@pytest.fixture
def search() -> ToolDefinition:
    """The inventory search, with a worked call."""
    definition = ToolDefinition.from_schema(
        "search_used_cars",
        "Search the inventory of used cars.",
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Search term."}},
            "required": ["query"],
        },
    )
    example = Example(arguments={"query": "BMW X3"}, result=["BMW X3 2021"])
    return ToolDefinition(
        name=definition.name,
        signature=definition.signature,
        description=definition.description,
        examples=(example,),
    )


@pytest.fixture
def library(loan: ToolDefinition, search: ToolDefinition) -> Library:
    """Both tools."""
    return Library([loan, search])


@pytest.fixture
def question(library: Library) -> Question:
    """A question that any tool may be the answer to."""
    author = Author(kind="model", name="feedback-model", prompt_hash="0" * 64)
    return Question(library=library, stream="feedback", author=author, evidence=("e1",))


MakeEpisode = Callable[..., Episode]


@pytest.fixture
def make_episode() -> MakeEpisode:
    """Makes an episode of one turn from calls, each ``(name, arguments, outcome)``.

    An outcome is a value, or a ``ToolFailure``; a text stands for what the tool's author raised.
    """

    def make(episode_id: str, *calls: tuple[str, Mapping[str, Any], Any], **more: Any) -> Episode:
        return episode_of(*calls, episode_id=episode_id, model="policy", **more)

    return make


@pytest.fixture
def wrong_value() -> Callable[..., Verdict]:
    """Makes a verdict that says which value of which argument was wrong."""

    def make(tool: str, parameter: str, *, expected: Any, actual: Any) -> Verdict:
        evidence = Evidence(
            kind="wrong_value",
            message="a wrong value",
            call_id="c0",
            tool=tool,
            parameter=parameter,
            expected=expected,
            actual=actual,
        )
        return Verdict(passed=False, score=0.5, evidence=(evidence,), verifier="test")

    return make
