"""Tools that say the same take one place."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import CascadeRetriever, Lexical, SubGoal, Survivors
from agentkit.retrieval.stages.near_duplicates import NearDuplicates


def tool(name: str, text: str = "", *parameters: str) -> ToolDefinition:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return ToolDefinition.from_schema(name, text, {"type": "object", "properties": properties})


async def ranked(tools: list[ToolDefinition]) -> Survivors:
    """The tools ranked in the order given, after the stage."""
    survivors = Survivors.of(Library(tools)).add(
        {one.name: 1.0 - place / 100 for place, one in enumerate(tools)}
    )
    return await NearDuplicates()("query", SubGoal(intent="query"), survivors)


def names(survivors: Survivors) -> list[str]:
    return [hit.definition.name for hit in survivors.hits]


async def test_copies_come_behind_all_that_say_something_new() -> None:
    """The best copy keeps its place and names the others; these keep their order."""
    survivors = await ranked(
        [
            tool("home.get_weather", "Weather in a city.", "city"),
            tool("work.get_weather", "weather in a CITY.", "city"),
            tool("get_time", "Time in a city.", "city"),
            tool("get_weather", "Weather in a city.", "city"),
        ]
    )
    assert names(survivors) == ["home.get_weather", "get_time", "work.get_weather", "get_weather"]
    best, _, second, third = survivors.hits
    assert best.reason == "also as work.get_weather, get_weather"
    assert second.reason == "says the same as home.get_weather"
    assert [hit.score for hit in survivors.hits] == [1.0, 0.98, 0.97, 0.97]
    assert third.score == 0.97


async def test_one_difference_is_enough_to_stay() -> None:
    """Another text, another parameter or a name that shares little makes another tool."""
    tools = [
        tool("get_user", "Get the record.", "id"),
        tool("get_order", "Get the record.", "id"),
        tool("get_user_2", "Get the record.", "id", "version"),
        tool("get_user_3", "Get the old record.", "id"),
    ]
    survivors = await ranked(tools)
    assert names(survivors) == [one.name for one in tools]
    assert not any(hit.reason for hit in survivors.hits)


async def test_tools_without_a_description_are_left_alone() -> None:
    """Where nothing is said, nothing is known to be the same."""
    survivors = await ranked([tool("get_x"), tool("x_get"), tool("get_y", "Y.")])
    assert names(survivors) == ["get_x", "x_get", "get_y"]


async def test_a_catalogue_of_copies_still_shows_different_tools() -> None:
    """Eight copies of the best match leave room for the second best among five places."""
    copies = [tool(f"server{n}.get_weather", "Weather in a city.", "city") for n in range(8)]
    other = tool("get_air_quality", "Air quality in a city, apart from the weather.", "city")
    retriever = CascadeRetriever(stages=[Lexical(), NearDuplicates()], shortlist=5)
    found = await retriever.retrieve("the weather in a city", Library([*copies, other]))
    assert [one.name for one in found.offered][1] == "get_air_quality"


@settings(max_examples=40, deadline=None)
@given(kinds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=16))
async def test_nothing_is_lost_and_the_rest_keeps_its_order(kinds: list[tuple[int, int]]) -> None:
    """The same tools are ranked before and after, with scores that never rise from hit to hit."""
    tools = [
        tool(f"find_city_guide_{n}", f"Text {text}.", f"p{p}") for n, (text, p) in enumerate(kinds)
    ]
    survivors = await ranked(tools)
    assert sorted(names(survivors)) == sorted(one.name for one in tools)
    scores = [hit.score for hit in survivors.hits]
    assert scores == sorted(scores, reverse=True)
    distinct = [name for name in names(survivors) if "says" not in _reason(survivors, name)]
    assert len(distinct) == len(set(kinds))


def _reason(survivors: Survivors, name: str) -> str:
    return next(hit.reason for hit in survivors.hits if hit.definition.name == name)
