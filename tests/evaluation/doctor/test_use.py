"""What stored episodes say of tools."""

import pytest

from agentkit.episodes import Episode, RetrievalTrace, Turn
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult

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


def test_without_episodes_nothing_is_said_of_use(look, tools):
    """A file of tools has no episodes."""
    assert look(*tools, codes=CODES) == []


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
