"""Tools that the best ones name as the source of an argument."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.index import IndexConfig
from agentkit.retrieval.ranking import TextRanker
from agentkit.retrieval.references import NameWordsChannel, References
from agentkit.retrieval.retriever import SubGoal

CHANNEL = NameWordsChannel()


def tool(name: str, summary: str, required: str = "", optional: str = "") -> ToolDefinition:
    properties = {
        "key": {"type": "string", "description": required},
        "extra": {"type": "string", "description": optional},
    }
    schema = {"type": "object", "properties": properties, "required": ["key"]}
    return ToolDefinition.from_schema(name, summary, schema)


@pytest.fixture
def library() -> Library:
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


async def ranked(library, text="I want to read reviews and tips", **settings):
    stages = [TextRanker(embedder=None, cut=False), References(**settings)]
    channels = [one for stage in stages for one in getattr(stage, "channels", ())]
    candidates = Candidates.of(library, channels)
    for stage in stages:
        candidates = await stage(text, SubGoal(intent=text), candidates)
    return candidates


def names(candidates):
    return [hit.definition.name for hit in candidates.hits]


async def test_what_the_best_tool_needs_follows_it(library):
    """Two hops bring the source of the source, each right behind the one that needs it."""
    found = await ranked(library)
    assert names(found) == ["Get_Reviews", "Search_Hotels", "Search_Place", "list_reviews_of_books"]
    assert [hit.reason for hit in found.hits[1:3]] == [
        "gives what Get_Reviews needs",
        "gives what Search_Hotels needs",
    ]
    assert found.hits[1].fields == {"references": pytest.approx(0.95)}


async def test_hops_say_how_far_to_go(library):
    """One hop stops at what the best tools themselves name."""
    assert "Search_Place" not in names(await ranked(library, hops=1))


async def test_optional_parameters_lift_nothing(library):
    """A filter that may be left out is not needed."""
    assert "Get_Filter" not in names(await ranked(library))


async def test_a_tool_called_by_name_does_not_share_that(library):
    """What it needs rises behind it by its match, not above others that are called by name."""
    found = await ranked(library, "Get_Reviews and Get_Filter, please")
    assert set(names(found)[:2]) == {"Get_Reviews", "Get_Filter"}


async def test_dropped_tools_stay_dropped(library):
    """References cannot bring back what an earlier stage dropped."""
    stage = References()
    candidates = Candidates.of(library, stage.channels).where(
        lambda one: one.name != "Search_Hotels"
    )
    found = await stage("x", SubGoal(intent="x"), candidates.add({"Get_Reviews": 1.0}))
    assert names(found) == ["Get_Reviews"]


async def test_tools_that_need_each_other_end():
    """A cycle of mentions neither loops nor lifts anything above its reader."""
    library = Library(
        [
            tool("Read_Alpha", "Reviews.", "From Read Beta."),
            tool("Read_Beta", "Else.", "From Read Alpha."),
        ]
    )
    assert names(await ranked(library, "reviews", hops=50)) == ["Read_Alpha", "Read_Beta"]


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
