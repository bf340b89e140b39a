"""What the evidence proposer infers: look-ups, confused tools, when to ask or to answer."""

from __future__ import annotations

import pytest

from agentkit import Library, ToolDefinition
from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.tools.rules import CallBefore

MISTAKEN = "Requests for it are easily taken for this, which it does not do:"


def text_tool(name, summary, *parameters):
    """A tool with text parameters, all of them required."""
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
    }
    return ToolDefinition.from_schema(name, summary, schema)


@pytest.fixture
def tools():
    """Two tools that go together and one that is taken for the second."""
    return Library(
        [
            text_tool("find_station", "Find the id of a station.", "town"),
            text_tool("read_forecast", "Read the forecast of a station.", "station"),
            text_tool("read_archive", "Read past weather of a station.", "station"),
        ]
    )


async def proposed(library, *episodes):
    """All proposals, as tool, rules and usage rules."""
    found = await EvidenceProposer().propose(Observations(library=library, episodes=episodes))
    return [
        (one.tool_name, one.candidate.specification.rules, one.candidate.description.usage_rules)
        for one in found
    ]


def looked_up(make_episode, at):
    """The id came from the other tool."""
    station = f"ST-{at}"
    return make_episode(
        f"ok{at}",
        ("find_station", {"town": f"Town{at}"}, {"id": station}),
        ("read_forecast", {"station": station}, "rain"),
        request=f"Weather in Town{at}?",
    )


def guessed(make_episode, at):
    """The id was made up, and refused."""
    call = ("read_forecast", {"station": f"Town{at}"}, f"!no station 'Town{at}'")
    return make_episode(f"bad{at}", call, request=f"Weather in Town{at}?")


async def test_a_look_up_that_always_came_first_becomes_a_rule(tools, make_episode):
    """Ids came from one tool in every success, and calls with ids of their own failed."""
    good = [looked_up(make_episode, at) for at in range(3)]
    bad = [guessed(make_episode, at) for at in (7, 8)]
    rule = CallBefore(tool="find_station", parameter="station")
    # "no station 'Town7'" is a ModelRetry, which blames the argument whose value it quotes
    assert await proposed(tools, *good, *bad) == [("read_forecast", (rule,), ())]


async def test_a_value_that_the_user_knew_forbids_the_look_up(tools, make_episode):
    """Once the user gave the id, and the tool took it: nobody has to look it up."""
    good = [looked_up(make_episode, at) for at in range(3)]
    bad = [guessed(make_episode, at) for at in (7, 8)]
    told = make_episode(
        "told", ("read_forecast", {"station": "ST-9"}, "sun"), request="Forecast for ST-9?"
    )
    assert await proposed(tools, *good, *bad, told) == []


async def test_successes_alone_make_no_look_up(tools, make_episode):
    """Nothing failed, so nothing needs to be enforced."""
    assert await proposed(tools, *[looked_up(make_episode, at) for at in range(5)]) == []


def confused(make_episode, at):
    """The archive was read where the forecast was due."""
    evidence = (
        Evidence(kind="missing_call", message="", tool="read_forecast"),
        Evidence(kind="unexpected_call", message="", tool="read_archive", call_id="c0"),
    )
    verdict = Verdict(passed=False, evidence=evidence)
    call = ("read_archive", {"station": f"ST-{at}"}, "rain")
    return make_episode(f"mix{at}", call, request=f"Tomorrow at ST-{at}?", verdict=verdict)


async def test_confused_tools_are_told_apart_by_purpose(tools, make_episode):
    """Each text says when the other one is meant, without its name and without an instance."""
    found = await proposed(tools, *[confused(make_episode, at) for at in range(2)])
    assert found == [
        (
            "read_archive",
            (),
            ("Do not use it for this, which another tool does: read the forecast of a station.",),
        ),
        (
            "read_forecast",
            (),
            (f"{MISTAKEN} read past weather of a station.",),
        ),
    ]


async def test_tools_with_one_purpose_can_not_be_told_apart(make_episode):
    """Where both summaries say the same there is nothing to say."""
    twins = Library(
        [
            text_tool("read_forecast", "Weather of a station.", "station"),
            text_tool("read_archive", "Weather of a station.", "station"),
        ]
    )
    assert await proposed(twins, *[confused(make_episode, at) for at in range(2)]) == []


def spurious(make_episode, at, request):
    """A call was made where none was due."""
    evidence = Evidence(kind="unexpected_call", message="", tool="read_archive", call_id="c0")
    verdict = Verdict(passed=False, evidence=(evidence,))
    call = ("read_archive", {"station": f"ST-{at}"}, "rain")
    return make_episode(f"spur{at}", call, request=request, verdict=verdict)


async def test_invented_values_are_to_be_asked_for(tools, make_episode):
    """The station stood nowhere: the model made it up instead of asking."""
    episodes = [spurious(make_episode, at, "How was the weather?") for at in range(2)]
    [(tool, _, [rule])] = await proposed(tools, *episodes)
    assert tool == "read_archive"
    assert rule.startswith("Call it only when the value of station is known")
