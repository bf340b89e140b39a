"""A tool that the query calls by name wins."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import CascadeRetriever, NameIndex


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("use get_time to send a mail about the weather forecast", "get_time"),
        ("GET_TIME weather forecast for a city", "get_time"),
        ("weather forecast for a city, then get_time.", "get_time"),
        ("weather forecast for a city (searchFlights)", "searchFlights"),
        ("reserve a room with math.add", "math.add"),
        ("reserve a room, add(1, 2)", "add"),
        ("reserve a room with `add`", "add"),
        ("reserve a room with the add tool", "add"),
        ('reserve a room with the "add" function', "add"),
        ("reserve a room with the tool named 'add'", "add"),
        ("search", "search"),
    ],
)
async def test_a_named_tool_wins(names_for, query, first):
    """However much the rest of the query speaks for others, the named tool comes first."""
    assert (await names_for(query))[0] == first


@pytest.mark.parametrize(
    "query",
    [
        "add a weather forecast for the city",
        "search the weather forecast of a city",
        "SEARCH the weather forecast of a city",
        "searchflights weather forecast city",
        "weather forecast city math.add.all",
        "weather forecast of my_get_time city",
        "weather forecast city https://example.com/get_time",
    ],
)
async def test_ordinary_words_and_longer_identifiers_are_no_names(names_for, query):
    """A plain word, and an identifier that merely contains a name, leave the ranking alone."""
    assert (await names_for(query))[0] == "get_weather"


async def test_names_win_among_thousands_of_likes():
    """A name is found even where hundreds of tools share all of its words."""
    filler = [
        ToolDefinition.from_schema(f"get_data_{i}", "Get data, get more data.", {})
        for i in range(500)
    ]
    library = Library([*filler, ToolDefinition.from_schema("data.get", "Nothing.", {})])
    found = await CascadeRetriever().retrieve("get data from data.get please", library)
    assert found.offered[0].name == "data.get"


def test_capitals_decide_between_names_that_differ_in_nothing_else():
    """Both are mentioned, and the one written as in the text is marked."""
    index = NameIndex(["getUser", "getuser", "GETUSER"])
    assert index.mentioned("call getUser") == {"getUser": True, "getuser": False, "GETUSER": False}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first aid", "Give FIRST AID at once"),
        ("reviews(tips)", "see reviews(tips), please"),
        ("天气_查询", "请用天气_查询"),
        ("brave-search", "try brave-search"),
        ("files/read_text", "try files/read_text"),
        ("mcp__files__read", "try mcp__files__read"),
        ("天气", "请用 `天气`"),
    ],
)
def test_unusual_names_are_mentioned_word_for_word(name, text):
    """Names with spaces, signs or other scripts are found too."""
    assert list(NameIndex([name]).mentioned(text)) == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first aid", "his first aide"),
        ("天气", "今天天气怎么样"),
        ("checkOut", "time to checkout"),
        ("add", "add1(2)"),
        ("b", "the distance of A(3, 4) and B(1, 2)"),
        ("add", "please add a function of mine"),
    ],
)
def test_parts_of_words_and_plain_words_are_not_mentions(name, text):
    """What only looks like the name, or is an ordinary word, does not count."""
    assert NameIndex([name]).mentioned(text) == {}


def test_long_texts_are_read_in_linear_time():
    """A very long word, a run of signs or of backticks ends soon; the test would time out."""
    index = NameIndex(["add", "get_time", "first aid"])
    for text in ("a" * 200_000, "a." * 100_000, "`" * 200_000, "tool " * 40_000, "a_" * 100_000):
        assert index.mentioned(text) == {}
    assert index.mentioned("天" * 200_000) == {}
    assert index.mentioned("天" * 5_000 + "first aid" + "天" * 5_000) == {"first aid": True}


phrases = st.lists(st.sampled_from(["a", "ab", "é", "天", "-"]), min_size=2, max_size=4)


@given(st.sets(phrases.map(" ".join), max_size=5), st.text("ab é天-", max_size=60))
def test_phrases_are_found_wherever_no_word_goes_on(names, text):
    """A name with spaces is found just where it stands between other characters than a-z and _."""
    found = {name for name in names if re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", text)}
    assert set(NameIndex(names).mentioned(text)) == found
