"""What tools were used for, and what of it may be kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library
from agentkit.episodes import RetrievalTrace, Turn
from agentkit.evolution.usage import private_part, unmatched_words, uses_of
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

# --- What looks private, and what only looks like it ---------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mail ann.b+c@example.co.uk now", "an e-mail address"),
        ("use sk-abcdefghijklmnop1234", "a key"),
        ("ghp_" + "a1" * 12, "a key"),
        ("my password is hunter2", "a password"),
        ("API key: xyz", "a password"),
        ("call +44 20 7946 0958", "a phone number"),
        ("call me at (555) 123-4567", "a phone number"),
        ("or 555.123.4567.", "a phone number"),
        ("my number is 219-09-9999.", "a social security number"),
        ("pay to DE89 3704 0044 0532 0130 00", "an account number"),
        ("card 4111 1111 1111 1111", "a card number"),
        ("token Zx8Kq2Lm9Pv4Rt7Yw1Nb6Hc3", "a long random word"),
        ("x-" + "eyJhbGciOiJI." * 2 + "c2lnbmF0dXJl", "a key"),
    ],
)
def test_formats_that_are_private(text, what):
    """An address, a key or a number of an account is known by its look."""
    assert private_part(text) == what
    assert private_part({"deep": [{"in": text}]}) == what


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Flights from Rome to Oslo on 2026-08-15, two adults",
        "area of a 10 x 20.5 rectangle",
        "order 12345678901234",
        "part 1-555-123-4567-9 of ISBN 978-0-306-40615-7",
        "how do I change my password?",
        "https://example.org/a/long/path/that/goes/on",
        "the method calculateTheAreaOfAVeryLargeTriangle",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "@ann said so",
        "罗马会下雨吗",
    ],
)
def test_formats_that_are_not(text):
    """Dates, orders, names of functions and places in the web stay."""
    assert private_part(text) is None


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "Authorization"])
def test_fields_that_say_so(name):
    """A field that is called like a secret is one, unless it is empty."""
    assert private_part({"login": {name: "x"}}) == "a field that holds a secret"
    assert private_part({"login": {name: ""}}) is None


# --- The words that users say and no tool has ----------------------------------------------------


ROME = ("weather", {"city": "Rome"}, "sunny")


def said(episodes, library, **options):
    """Word and count of each."""
    return {one.word: one.episodes for one in unmatched_words(episodes, library, **options)}


def test_words_are_counted_with_requests_to_read(episode, catalogue):
    """Each request counts once, and those that went badly are told."""
    library = Library(catalogue)
    asked = [
        episode("Umbrella in Rome?", ROME),
        episode("Umbrella or coat?", passed=False),
        episode("Umbrella in Rome?", ROME, episode_id="again"),
        episode("What is the weather?", ROME),
    ]
    (word,) = unmatched_words(asked, library)
    assert (word.word, word.episodes, word.failed) == ("umbrella", 2, 1)
    assert word.requests == ("Umbrella in Rome?", "Umbrella or coat?")
    assert said(asked, library, least=1) == {"umbrella": 2, "coat": 1}


def test_data_is_no_word(episode, catalogue):
    """Numbers, and what was passed on to a tool, say nothing about the catalogue."""
    assert said([episode("Weather in Rome on day 12b?", ROME)], Library(catalogue), least=1) == {
        "day": 1
    }


def test_private_requests_are_left_out(episode, catalogue):
    """Neither their words nor their text are shown."""
    one = episode("Forward my umbrella to ann@example.org", passed=None)
    assert said([one], Library(catalogue), least=1) == {}


def test_what_was_learned_is_no_longer_unmatched(learner, episode):
    """A tool has the words of its examples."""
    asked = [episode("Umbrella in Rome?", ROME), episode("Umbrella for Oslo?", ROME)]
    assert "umbrella" in said(asked, learner.library)
    learner.learn(asked)
    assert "umbrella" not in said(asked, learner.library)


# --- Which words a successful call is credited with ----------------------------------------------


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
