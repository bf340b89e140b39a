"""Stages one by one, and tools that the best ones name as a source."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.messages import Usage
from agentkit.retrieval import (
    Candidates,
    CascadeRetriever,
    Examples,
    SubGoal,
    TextRanker,
)
from agentkit.retrieval.index import IndexConfig
from agentkit.retrieval.references import NameWordsChannel, References


def everything(library, *stages):
    """All tools of a library, with what the stages read."""
    return Candidates.of(library, [one for stage in stages for one in stage.channels])


async def run(stage, query, candidates, goal=None):
    return await stage(query, goal or SubGoal(intent=query), candidates)


def ranked(candidates):
    return [hit.definition.name for hit in candidates.hits]


async def test_a_tool_called_by_name_comes_first(catalogue):
    """All tools stay in the running, the named one in front with its reason."""
    stage = TextRanker(embedder=None, cut=False)
    left = await run(stage, "forecast the weather with get_time", everything(catalogue, stage))
    assert len(left) == len(catalogue)
    assert ranked(left)[0] == "get_time"
    assert left.hits[0].reason.endswith("called by name")


async def test_lexical_keeps_the_best_matches_and_says_why(catalogue):
    """At most ``keep`` tools go on; the best match adds a score of 1."""
    stage = TextRanker(embedder=None, keep=2)
    left = await run(stage, "forecast of the weather, the time", everything(catalogue, stage))
    assert ranked(left) == ["get_weather", "get_time"]
    assert len(left) == 2
    assert left.hits[0].score == 1.0
    assert left.hits[0].reason == "shares forecast, weather"


async def test_a_stage_keeps_nothing_of_a_dead_library(define):
    """Indexes go when their snapshot goes, and several snapshots can be in use at once."""
    stages = [Examples(), TextRanker(embedder=None)]
    retriever = CascadeRetriever(stages=stages)
    library, newer = Library([define("one", "Rocket.")]), Library([define("two", "Rocket.")])
    for snapshot, name in ((library, "one"), (newer, "two"), (library, "one")):
        found = await retriever.retrieve("rocket", snapshot)
        assert found.offered[0].name == name
    ghost = weakref.ref(library)
    del library, snapshot, found
    gc.collect()
    assert ghost() is None
    assert (await retriever.retrieve("rocket", newer)).offered[0].name == "two"


def test_scores_add_up_and_ties_keep_their_order(catalogue):
    """Equal scores stay as they were; a reason is added to the one before."""
    candidates = Candidates.of(catalogue).add({"search": 1.0, "add": 1.0}, reason="first")
    candidates = candidates.add(
        {"get_time": 1.0, "add": 0.5, "search": 0.5}, reason={"add": "second"}
    )
    assert ranked(candidates) == ["search", "add", "get_time"]
    assert [hit.reason for hit in candidates.hits] == ["first", "first; second", ""]
    assert candidates.hits[0].score == 1.5


def test_invented_names_are_ignored(catalogue):
    """A model that ranks may name tools that do not exist."""
    assert ranked(Candidates.of(catalogue).add({"no_such_tool": 9.0, "add": 1.0})) == ["add"]


def test_best_drops_the_unranked(catalogue):
    """After it only ranked tools are in the running."""
    candidates = Candidates.of(catalogue).add({"add": 1.0, "search": 2.0})
    assert len(candidates) == len(catalogue)
    assert ranked(candidates.best()) == ["search", "add"]
    assert len(candidates.best()) == 2
    assert ranked(candidates.best(1)) == ["search"]
    assert ranked(candidates.best(1).add({"get_time": 5.0, "add": 5.0})) == ["search"]
    assert len(candidates.best(1).only(candidates.where(lambda _: True).mask)) == 1


async def test_an_async_function_is_a_stage(catalogue):
    """A stage needs no class; the report calls it by its name."""

    async def only_short_names(query, goal, candidates):
        return candidates.where(lambda definition: len(definition.name) < 9)

    retriever = CascadeRetriever(stages=[only_short_names, TextRanker(embedder=None)])
    found = await retriever.retrieve("weather or time", catalogue)
    assert [definition.name for definition in found.offered] == ["get_time"]
    assert found.stages[0].stage == "only_short_names"
    assert found.stages[0].survivors == 4


async def test_what_a_stage_spends_is_reported(catalogue):
    """Model use of stages adds up in the result."""

    async def asks_a_model(query, goal, candidates):
        return candidates.spent(Usage(requests=1, prompt_tokens=10))

    retriever = CascadeRetriever(stages=[asks_a_model, TextRanker(embedder=None), asks_a_model])
    found = await retriever.retrieve("weather", catalogue)
    assert found.usage == Usage(requests=2, prompt_tokens=20)


async def test_a_stage_that_forgets_to_return_is_told_so(catalogue):
    """The error names the stage and what to write."""

    async def forgetful(query, goal, candidates):
        candidates.best(3)

    with pytest.raises(UsageError, match=r"'forgetful' gave NoneType.*return candidates"):
        await CascadeRetriever(stages=[forgetful]).retrieve("weather", catalogue)


async def test_a_stage_that_is_not_async_is_told_so(catalogue):
    """A plain function is refused with a hint, not with a TypeError from the event loop."""

    def plain(query, goal, candidates):
        return candidates

    with pytest.raises(UsageError, match=r"'plain' gave Candidates.*async def"):
        await CascadeRetriever(stages=[plain]).retrieve("weather", catalogue)


async def test_a_stage_may_show_a_tool_in_other_words(catalogue):
    """A hit may carry another revision of the definition; its own card and schema are counted."""

    async def reword(query, goal, candidates):
        hits = [
            replace(hit, definition=replace(hit.definition, name="weather_now"))
            for hit in candidates.hits
        ]
        return replace(candidates, hits=tuple(hits))

    found = await CascadeRetriever(stages=[TextRanker(embedder=None), reword]).retrieve(
        "weather", catalogue
    )
    assert found.offered[0].name == "weather_now"


CHANNEL = NameWordsChannel()


def tool(name: str, summary: str, required: str = "", optional: str = "") -> ToolDefinition:
    properties = {
        "key": {"type": "string", "description": required},
        "extra": {"type": "string", "description": optional},
    }
    schema = {"type": "object", "properties": properties, "required": ["key"]}
    return ToolDefinition.from_schema(name, summary, schema)


@pytest.fixture
def library():
    """Reviews need a hotel, a hotel needs a place."""
    return Library(
        [
            tool(
                "Get_Reviews",
                "Reviews and tips.",
                "From the endpoint **(Search Hotels)**.",
                "See Get Filter.",
            ),
            tool("Search_Hotels", "Look for rooms.", "As `searchPlace` gives it."),
            tool("Search_Place", "Coordinates of a city.", "Any text."),
            tool("Get_Filter", "Filters of a search.", "Any text."),
            tool("list_reviews_of_books", "Reviews of books.", "The reviews to search hotels for."),
        ]
    )


async def with_references(library, text="I want to read reviews and tips"):
    stages = [TextRanker(embedder=None, cut=False), References()]
    channels = [one for stage in stages for one in getattr(stage, "channels", ())]
    candidates = Candidates.of(library, channels)
    for stage in stages:
        candidates = await stage(text, SubGoal(intent=text), candidates)
    return candidates


def names(candidates):
    return [hit.definition.name for hit in candidates.hits]


async def test_what_the_best_tool_needs_follows_it(library):
    """Two hops bring the source of the source, each right behind the one that needs it."""
    found = await with_references(library)
    assert names(found) == ["Get_Reviews", "Search_Hotels", "Search_Place", "list_reviews_of_books"]
    assert [hit.reason for hit in found.hits[1:3]] == [
        "gives what Get_Reviews needs",
        "gives what Search_Hotels needs",
    ]
    assert found.hits[1].fields == {"references": pytest.approx(0.95)}


async def test_optional_parameters_lift_nothing(library):
    """A filter that may be left out is not needed."""
    assert "Get_Filter" not in names(await with_references(library))


async def test_a_tool_called_by_name_does_not_share_that(library):
    """What it needs rises behind it by its match, not above others that are called by name."""
    found = await with_references(library, "Get_Reviews and Get_Filter, please")
    assert set(names(found)[:2]) == {"Get_Reviews", "Get_Filter"}


async def test_tools_that_need_each_other_end():
    """A cycle of mentions neither loops nor lifts anything above its reader."""
    library = Library(
        [
            tool("Read_Alpha", "Reviews.", "From Read Beta."),
            tool("Read_Beta", "Else.", "From Read Alpha."),
        ]
    )
    assert names(await with_references(library, "reviews")) == ["Read_Alpha", "Read_Beta"]


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("see search_place", ["Search_Place"]),
        ("see api/v1/searchPlace", ["Search_Place"]),
        ("see `searchPlace`", ["Search_Place"]),
        ("Search Place, then Get Filter.", ["Search_Place", "Get_Filter"]),
        ("a search place", []),
        ("search the place", []),
        ("", []),
        ("\U0001f600 发送 SEARCH PLACE", ["Search_Place"]),
    ],
)
def test_a_mention_is_written_as_a_name(library, text, mentioned):
    """Identifiers and capitalised words mention a tool, prose does not."""
    index = library.derived(IndexConfig(channels=(CHANNEL,)))
    assert CHANNEL.mentioned(index, text) == mentioned


@given(
    st.lists(st.sampled_from(["Get", "get", "It", "of", "2", "HTTP", "x"]), min_size=2, max_size=8),
    st.sampled_from(["_", "/", " ", ", "]),
)
def test_a_mention_has_no_space_or_capitals_throughout(words, joint):
    """A name is mentioned without spaces, or with each word but small ones capitalised."""
    index = Library([tool("_".join(words), "", "")]).derived(IndexConfig(channels=(CHANNEL,)))
    capitalised = all(word == "of" or not word[0].islower() for word in words)
    found = CHANNEL.mentioned(index, f"(see: {joint.join(words)}, please)")
    assert bool(found) == (" " not in joint or capitalised)


def test_the_longest_name_is_meant():
    """A name within another is not mentioned by that one."""
    library = Library([tool("get_hotel", "", ""), tool("get_hotel_reviews", "", "")])
    index = library.derived(IndexConfig(channels=(CHANNEL,)))
    assert CHANNEL.mentioned(index, "Get Hotel Reviews") == ["get_hotel_reviews"]


def test_a_name_that_many_share_means_none_of_them():
    """Where four tools have the same words, a mention does not say which."""
    spellings = ("get_it", "Get_It", "getIt", "get-it")
    for count, found in ((3, 3), (4, 0)):
        library = Library([tool(name, "", "") for name in spellings[:count]])
        index = library.derived(IndexConfig(channels=(CHANNEL,)))
        assert len(CHANNEL.mentioned(index, "see Get It")) == found


def test_an_index_that_grew_mentions_the_same(library):
    """Removed tools are not mentioned, added ones are."""
    library.derived(IndexConfig(channels=(CHANNEL,)))
    changed = library.without(["Search_Place"]).with_tools([tool("Ask_Weather", "", "")])
    index = changed.derived(IndexConfig(channels=(CHANNEL,)))
    assert CHANNEL.mentioned(index, "Search Place; Ask Weather; Get Filter") == [
        "Ask_Weather",
        "Get_Filter",
    ]
