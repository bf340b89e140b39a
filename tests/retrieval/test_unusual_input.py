"""Unusual queries and libraries get an answer, never a crash."""

from __future__ import annotations

import pytest

from agentkit import Library, ToolDefinition
from agentkit.retrieval import CascadeRetriever, IndexConfig, LexicalChannel, default_stages

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
    """A hundred thousand characters of common words do not hide the one that tells."""
    tools = [define(f"get_{n}", "Get the data of the city.") for n in range(50)]
    library = Library([*tools, define("tides", "Tides at a coast.")])
    padding = " ".join(f"get data city filler{n}" for n in range(4_000))
    found = await CascadeRetriever().retrieve(f"{padding} tides", library)
    assert found.hits[0].definition.name == "tides"


async def test_a_library_of_no_tool():
    """Nothing is found, and the reports say so."""
    found = await CascadeRetriever().retrieve("use get_time for the weather", Library())
    assert (found.hits, found.offered, found.tokens) == ((), (), 0)
    assert {report.survivors for report in found.stages} == {0}


async def test_a_library_of_one_tool(define, names_for):
    """It is found by its name and by its words, and not by others."""
    library = Library([define("get_time", "Current time.")])
    assert await names_for("what is the current time", library=library) == ["get_time"]
    assert await names_for("get_time", library=library) == ["get_time"]
    assert await names_for("a loan", library=library) == []


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


def test_a_term_that_every_tool_has_still_counts():
    """Rarity is never negative: a match is better than none."""
    library = Library(ToolDefinition(name=f"rocket {n}") for n in range(5))
    words = LexicalChannel()
    index = library.derived(IndexConfig(channels=(words,)))
    assert (words.match(index, words.query("rocket")).scores() > 0).all()
