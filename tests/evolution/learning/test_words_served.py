"""Which words a successful call is credited with."""

from __future__ import annotations

from dataclasses import replace

from agentkit.episodes import RetrievalTrace, Turn
from agentkit.evolution.usage import uses_of
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

ROME = ("weather", {"city": "Rome"}, "sunny")
MAIL = ("send_mail", {"to": "Ann", "text": "sunny"}, "sent")


def served(*episodes, **options):
    """Tool and words of each use."""
    return [(use.tool, use.query) for use in uses_of(episodes, **options)]


def test_a_call_serves_the_request(episode):
    """Every tool of an episode served what the user asked, as a whole."""
    one = episode("Tell Ann whether it rains in Rome.", ROME, MAIL)
    assert served(one) == [("weather", one.request), ("send_mail", one.request)]


def test_with_sub_goals_a_call_serves_the_one_that_ranked_its_tool_best(episode):
    """Of two steps that found it the tool served the one that placed it higher."""
    goals = [("know the weather", ["weather"]), ("tell Ann", ["send_mail", "weather"])]
    one = episode("Tell Ann whether it rains in Rome.", ROME, MAIL, goals=goals)
    assert served(one) == [("weather", "know the weather"), ("send_mail", "tell Ann")]


def searched(one, query, *found, offered=()):
    """The episode with a search of the model before its calls."""
    call = ToolCall(call_id="s", name="search_tools", arguments={"query": query})
    result = ToolResult(call_id="s", name="search_tools", status="ok", value="found")
    trace = RetrievalTrace(query=query, shortlist=found, offered=found)
    first = RetrievalTrace(query=one.request, shortlist=offered, offered=offered)
    search = Turn(
        message=AssistantMessage(tool_calls=(call,)),
        results=(result,),
        retrieval=first,
        searches=(trace,),
    )
    return replace(one, turns=(search, *one.turns))


def test_a_tool_that_the_model_searched_for_serves_both(episode):
    """The words of the user, who did not find it, and those of the model, who did."""
    one = searched(episode("Umbrella?", ROME), "rain forecast", "weather")
    assert served(one) == [("weather", "Umbrella?"), ("weather", "rain forecast")]


def test_failed_calls_serve_nothing(episode):
    """A call that failed is no example of anything."""
    assert served(episode("Rain?", ("weather", {"city": "Rome"}, OSError("down")))) == []


def test_only_episodes_that_a_verdict_passed_count(episode):
    """Failed and unjudged ones are left out, unless the caller knows better."""
    failed, unjudged = episode("Rain?", ROME, passed=False), episode("Sun?", ROME, passed=None)
    assert served(failed, unjudged) == []
    assert served(failed, unjudged, passed=lambda one: one.verdict is None) == [("weather", "Sun?")]


def test_an_answer_to_waiting_calls_serves_the_request_that_they_were_made_for(episode):
    """An episode that goes on with another one takes over what was asked there."""
    asked = episode("Tell Ann.", passed=None, episode_id="e1")
    resumed = episode("", MAIL, episode_id="e2", resumes="e1")
    assert served(asked, resumed) == [("send_mail", "Tell Ann.")]
    assert served(resumed) == [("send_mail", "")]
