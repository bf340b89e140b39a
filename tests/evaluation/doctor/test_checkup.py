"""A whole check-up: order, filters, cost, use, and catalogues that are hard to look at."""

from __future__ import annotations

import random

import pytest

from agentkit import ToolDefinition
from agentkit.episodes import Episode, RetrievalTrace, Turn
from agentkit.evaluation.doctor import CHECKS, KINDS, Catalogue, examine
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult


def sick_tools():
    """Tools with many findings, of different names."""
    schema = {"properties": {"x": {}, "y": {"type": "array"}}, "required": ["z"]}
    opening = "This tool belongs to a system of many tools."
    return [
        ToolDefinition.from_schema(name, text, schema)
        for name, text in [
            ("get_user", "Get user."),
            ("getUser", ""),
            ("print", f"{opening} <p>Prints a text</p> on paper."),
            ("find_river", f"{opening} Rivers of a country by their length."),
            ("find_song", f"{opening} Songs of an artist, by the year."),
            ("find_song_2", f"{opening} Songs of an artist, by the year."),
        ]
    ]


def test_the_order_of_the_tools_changes_nothing():
    """Every permutation gives the same check-up."""
    tools = sick_tools()
    expected = examine(Catalogue.of(tools)).to_json()
    for seed in range(4):
        random.Random(seed).shuffle(tools)
        assert examine(Catalogue.of(tools)).to_json() == expected


def test_the_worst_come_first():
    """Errors stand before warnings, these before notes."""
    severities = [one.kind.severity for one in examine(Catalogue.of(sick_tools())).findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}


def test_every_kind_is_explained_and_belongs_to_one_check():
    """Codes are unique; each says why it matters and what to do."""
    listed = [code for codes in CHECKS.values() for code in codes]
    assert len(listed) == len(set(listed)) == len(KINDS)
    for kind in KINDS.values():
        assert kind.title
        assert kind.why.endswith(".")
        assert kind.advice.endswith(".")


def test_deep_and_recursive_schemas_are_survived():
    """References are not followed, and depth costs no stack."""
    deep = {"type": "string"}
    for _ in range(90):
        deep = {"type": "object", "properties": {"inner": deep}}
    tree = {"$ref": "#/$defs/T"}
    schema = {
        "type": "object",
        "properties": {"deep": deep, "tree": tree},
        "$defs": {"T": {"type": "object", "properties": {"tree": tree}}},
    }
    checkup = examine(Catalogue.of([ToolDefinition.from_schema("t", "Walk a tree.", schema)]))
    assert checkup.tokens > 0


def test_unaffordable_tools_are_told(a_tool, look):
    """A tool above the default budget can never be offered."""
    huge = a_tool("huge", properties={"p": {"type": "string", "description": "word " * 2000}})
    found = look(a_tool("small"), a_tool("heavy", "word " * 600), huge, codes=["unaffordable"])
    assert [one.tools for one in found] == [("huge",)]


CODES = ["always_fails", "passed_over", "never_used"]


def episode(number, name, *, fails=False, shortlist=()):
    """A run that called one tool."""
    failure = ToolFailure(kind="invalid_arguments", rule="`city` must be a string")
    result = ToolResult(
        call_id="1",
        name=name,
        status="failed" if fails else "ok",
        failure=failure if fails else None,
    )
    message = AssistantMessage(tool_calls=(ToolCall(call_id="1", name=name),))
    trace = RetrievalTrace(query="q", shortlist=tuple(shortlist), offered=())
    turn = Turn(message=message, results=(result,), retrieval=trace)
    return Episode(episode_id=f"e{number}", request=f"request {number}", turns=(turn,))


@pytest.fixture
def tools(a_tool):
    """Three tools."""
    return [a_tool(name) for name in ("used", "shown", "idle")]


def test_tools_nobody_called(look, tools):
    """One that was found and never called is told apart from one that was never found."""
    episodes = [episode(number, "used", shortlist=["used", "shown"]) for number in range(20)]
    found = look(*tools, codes=CODES, episodes=episodes)
    assert [(one.kind.code, one.tools) for one in found] == [
        ("passed_over", ("shown",)),
        ("never_used", ("idle",)),
    ]
    assert "20 episodes" in found[0].what


@pytest.mark.parametrize("number", [0, 1, 19])
def test_few_episodes_prove_nothing(look, tools, number):
    """Below twenty episodes no tool is called unused."""
    episodes = [episode(at, "used") for at in range(number)]
    assert look(*tools, codes=CODES, episodes=episodes) == []


def test_tools_that_always_fail(look, tools):
    """Three failures and no success is an error, told with the rule that was broken most."""
    episodes = [episode(number, "used", fails=True) for number in range(3)]
    (found,) = look(*tools, codes=CODES, episodes=episodes)
    assert found.kind.code == "always_fails"
    assert "`city` must be a string" in found.what
    assert look(*tools, codes=CODES, episodes=[*episodes, episode(4, "used")]) == []


def test_requests_that_a_tool_answered_are_its_own_words(look, a_tool):
    """Where another tool ranks above for such a request, the two are confused."""
    tools = [
        a_tool("order_food", "Order a meal."),
        a_tool("landlord_letters", "Letters to a landlord, by request."),
    ]
    answered = Episode.from_json(
        {**episode(1, "order_food").to_json(), "request": "letters landlord request"}
    )
    (found,) = look(*tools, codes=["confused", "not_found"], episodes=[answered])
    assert found.tools == ("order_food", "landlord_letters")


"""The fewest findings of some kinds, a little below what was found in November 2026."""
