"""The whole of retrieval: budgets, ties, reports and unusual input."""

from __future__ import annotations

import asyncio
import logging
from math import ceil
from threading import Event

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.retrieval import (
    CascadeRetriever,
    Plan,
    SubGoal,
    TextRanker,
    card,
    default_retriever,
    default_stages,
    estimate_tokens,
    schema_text,
)
from tests.support.cost import check_cost

WORDS = ("rocket", "weather", "loan", "mail", "find", "天气")


def cost(definition, count=estimate_tokens):
    """What offering one tool costs."""
    return count(schema_text(definition))


@st.composite
def libraries(draw):
    summaries = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
    texts = draw(st.lists(summaries, max_size=25))
    return Library(
        ToolDefinition.from_schema(
            f"tool_{place}", text, {"properties": {word: {} for word in text.split()[:3]}}
        )
        for place, text in enumerate(texts)
    )


@given(
    library=libraries(),
    query=st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    budget=st.integers(0, 600),
    shortlist=st.integers(1, 40),
    offer=st.integers(1, 8),
    count=st.sampled_from([estimate_tokens, len, lambda text: len(text) / 7.3]),
)
def test_the_budget_holds_for_any_library(library, query, budget, shortlist, offer, count):
    """Whole tokens stay within the budget, bounds hold, a tool is offered whenever one fits."""
    retriever = CascadeRetriever(
        shortlist=shortlist, offer=offer, token_budget=budget, count_tokens=count
    )
    found = asyncio.run(retriever.retrieve(query, library))
    names = [hit.definition.name for hit in found.hits]
    in_full = {definition.name for definition in found.offered}
    cards = [card(hit.definition) for hit in found.hits if hit.definition.name not in in_full]
    spent = sum(ceil(count(line + "\n")) for line in cards)
    spent += sum(ceil(count(schema_text(definition))) for definition in found.offered)
    assert found.tokens == spent <= budget
    assert len(names) <= shortlist
    assert len(found.offered) <= offer
    assert [name for name in names if name in in_full] == [one.name for one in found.offered]
    assert found.cards.splitlines() == cards
    everything = CascadeRetriever(shortlist=shortlist, token_budget=10**9)
    matched = asyncio.run(everything.retrieve(query, library)).hits
    if any(ceil(cost(hit.definition, count)) <= budget for hit in matched):
        assert found.offered


@pytest.mark.parametrize("count", [-1, float("nan"), float("inf"), None, "7", [1, 2]])
async def test_what_is_no_count_is_refused(catalogue, count):
    """The error names what the counter gave."""
    retriever = CascadeRetriever(count_tokens=lambda _text: count)
    with pytest.raises(UsageError, match="count_tokens gave "):
        await retriever.retrieve("weather", catalogue)


@pytest.mark.parametrize("query", ["", "xylophone", "the of and", "?!"])
async def test_no_match_is_an_empty_result(catalogue, query):
    """Nothing is made up for a query that shares no word."""
    found = await CascadeRetriever().retrieve(query, catalogue)
    assert (found.hits, found.offered, found.cards, found.tokens) == ((), (), "", 0)
    assert found.trace().offered == ()


async def test_every_stage_reports_survivors_and_tokens(catalogue):
    """Reports stand in the order of the stages, then come shortlist and offer."""
    found = await CascadeRetriever(offer=1).retrieve("weather or time", catalogue)
    assert [(report.stage, report.survivors) for report in found.stages] == [
        ("examples", 10),
        ("in_hand", 10),
        ("text", 10),
        ("references", len(found.hits)),
        ("shortlist", len(found.hits)),
        ("offer", 1),
    ]
    assert found.stages[-2].tokens + found.stages[-1].tokens == found.tokens
    assert all(report.seconds >= 0 for report in found.stages)


async def test_stages_that_keep_more_do_not_lengthen_the_shortlist(catalogue):
    """Nor do several steps, which bring a ranking each."""
    everything = [TextRanker(embedder=None, keep=1_000)]
    found = await CascadeRetriever(stages=everything, shortlist=2).retrieve("a city", catalogue)
    assert len(found.hits) == 1
    query = "weather time flights mail loan room"
    found = await CascadeRetriever(stages=everything, shortlist=2).retrieve(query, catalogue)
    assert len(found.hits) == 2

    async def in_words(text):
        return Plan(goals=tuple(SubGoal(intent=word) for word in text.split()))

    found = await CascadeRetriever(planner=in_words, shortlist=6).retrieve(query, catalogue)
    assert len(found.hits) == 6
    found = await CascadeRetriever(planner=in_words, shortlist=3).retrieve(query, catalogue)
    assert len(found.hits) == 3


async def test_a_tool_too_large_is_passed_over(define):
    """The next best that fits is offered; the large one keeps its card."""
    large = define("rocket", "Launch a rocket.", fuel="Very long text. " * 500)
    library = Library([large, define("rocket_status", "Is a rocket there?")])
    found = await CascadeRetriever(token_budget=200).retrieve("launch rocket", library)
    assert [definition.name for definition in found.offered] == ["rocket_status"]
    assert [hit.definition.name for hit in found.hits] == ["rocket", "rocket_status"]


async def test_the_whole_shortlist_is_shown_before_more_schemas_are(define):
    """Beside the two best tools, cards of all others fit; only what is left makes schemas."""
    tools = [define(f"rocket_{number}", "Launch a rocket.", fuel="Kind.") for number in range(12)]
    library = Library(tools)
    everything = sum(estimate_tokens(card(tool) + "\n") for tool in tools)
    for budget in range(everything + 2 * cost(tools[0]), everything + 6 * cost(tools[0]), 7):
        found = await CascadeRetriever(token_budget=budget).retrieve("rocket", library)
        assert len(found.hits) == 12
        assert 2 <= len(found.offered) <= 5
    assert len(found.offered) == 5


async def test_when_no_schema_fits_only_cards_are_given_and_a_warning_says_so(catalogue, caplog):
    """The log names the budget that would be needed."""
    with caplog.at_level(logging.WARNING, logger="agentkit.retrieval"):
        found = await CascadeRetriever(token_budget=30).retrieve("weather", catalogue)
    needed = cost(catalogue["get_weather"].definition)
    assert found.offered == ()
    assert found.cards.startswith("get_weather(")
    assert "token budget of 30" in caplog.text
    assert f"'get_weather', needs {needed}" in caplog.text
    enough = CascadeRetriever(token_budget=needed)
    assert len((await enough.retrieve("weather", catalogue)).offered) == 1


@pytest.mark.parametrize(
    "arguments", [{"stages": []}, {"shortlist": 0}, {"offer": 0}, {"token_budget": -1}]
)
def test_impossible_settings_are_refused(arguments):
    """The message repeats the value."""
    with pytest.raises(UsageError, match=next(iter(arguments))):
        CascadeRetriever(**arguments)


async def test_others_run_while_an_index_is_made():
    """The event loop is free meanwhile, and ten first questions make one index."""
    released, waited = Event(), []

    def slow(texts):
        waited.append(released.wait(timeout=10))
        return [[float(len(text)), 1.0] for text in texts]

    library = Library([ToolDefinition.from_schema("send_mail", "Send a mail.", {})])
    retriever = CascadeRetriever(stages=default_stages(embedder=slow))
    asked = [asyncio.create_task(retriever.retrieve("mail", library)) for _ in range(10)]
    await asyncio.sleep(0)
    released.set()
    found = await asyncio.gather(*asked)
    assert {one.offered[0].name for one in found} == {"send_mail"}
    assert len(waited) <= 2  # the tools once, the question once
    assert all(waited)


QUERIES = {
    "empty": "",
    "blank": " \n\t ",
    "signs": "?! -- ''",
    "long": "please find the weather in oslo and bergen " * 2_400,
    "long word": "a" * 100_000,
    "long without a known word": "xylophone " * 10_000,
    "many different words": " ".join(f"word{n}" for n in range(14_000)),
    "many code names": " ".join(f"get_{n}" for n in range(12_000)),
    "Chinese": "请告诉我今天北京的天气预报怎么样",
    "Arabic": "ما هي حالة الطقس اليوم في القاهرة؟",
    "emoji": "🌦🌧☀️ 👨‍👩‍👧‍👦",
    "half a surrogate pair": "weather \ud83c in oslo",
    "control characters": "weather\x00\x1b[31m\u202e",
    "markup": "<script>weather</script> '; DROP TABLE tools; --",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
async def test_any_query_gets_an_answer(catalogue, query):
    """The answer keeps to the budget and names only tools of the library."""
    found = await CascadeRetriever().retrieve(query, catalogue)
    assert found.tokens <= 1600
    assert {hit.definition.name for hit in found.hits} <= set(catalogue.tools)
    assert found.trace().query == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("查询城市的天气预报", "今天的天气怎么样"),
        ("توقعات الطقس لمدينة", "الطقس في القاهرة"),
        ("Prévisions météo d'une ville", "METEO de la ville"),
        ("Погода в городе", "какая погода"),
    ],
)
async def test_other_scripts_are_searched(define, names_for, text, query):
    """A tool described in another script is found by a query in it."""
    library = Library([define("one", text), define("two", "Something else.")])
    assert await names_for(query, library=library) == ["one"]


async def test_a_long_query_is_searched_by_its_rarest_words(define):
    """More common words than are looked up do not hide the one that tells."""
    common = " ".join(f"{first}{second}x" for first in "bcdfghjklmn" for second in "aeiouy")
    tools = [define(f"get_{n}", common) for n in range(50)]
    library = Library([*tools, define("tides", "Tides at a coast.")])
    words_alone = CascadeRetriever(stages=default_stages(5, embedder=None))
    found = await words_alone.retrieve(f"{common} tides", library)
    assert found.hits[0].definition.name == "tides"


async def test_a_library_of_no_tool():
    """Nothing is found, and the reports say so."""
    found = await CascadeRetriever().retrieve("use get_time for the weather", Library())
    assert (found.hits, found.offered, found.tokens) == ((), (), 0)
    assert {report.survivors for report in found.stages} == {0}


async def test_thousands_of_identical_tools():
    """All match equally well: the first by name are shown, and the budget holds."""
    library = Library(
        ToolDefinition.from_schema(f"rocket_{n:05}x", "Launch a rocket.", {}) for n in range(2_000)
    )
    stages = default_stages(5, embedder=None)  # to word vectors, names are different texts
    retriever = CascadeRetriever(stages=stages, shortlist=5)
    found = await retriever.retrieve("launch a rocket", library)
    assert [hit.definition.name for hit in found.hits] == [f"rocket_{n:05}x" for n in range(5)]
    assert len({hit.score for hit in found.hits}) == 1
    fewer = library.without(["rocket_00001x"])
    found = await retriever.retrieve("launch a rocket", fewer)
    assert [hit.definition.name for hit in found.hits][:2] == ["rocket_00000x", "rocket_00002x"]


def test_megabytes_of_different_words_hold_up_nobody(define):
    """A request as large as a server takes costs what its two ends cost, and is found by them."""
    library = Library([define("rocket", "Launch a rocket."), define("mail", "Send a mail.")])
    request = "Launch it. " + " ".join(f"w{number}" for number in range(240_000))
    retriever = default_retriever()

    def work() -> None:
        found = asyncio.run(retriever.retrieve(request, library))
        assert found.query == request
        assert found.offered[0].name == "rocket"

    check_cost(work, len(request))
