"""How much of a tool's own words a request covers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.retrieval import Coverage, SubGoal, Survivors
from agentkit.retrieval.index.config import IndexConfig
from agentkit.retrieval.index.lexical import LexicalChannel
from agentkit.retrieval.stages.coverage import CoverageChannel

WORDS = LexicalChannel()
COVERAGE = CoverageChannel()
CONFIG = IndexConfig(channels=(WORDS, COVERAGE))

SOME_WORDS = ("get", "weather", "city", "flight", "book", "price", "list", "user")


def tool(name: str, text: str) -> ToolDefinition:
    return ToolDefinition.from_schema(name, text, {})


def shares_by_name(library: Library, request: str) -> dict[str, tuple[float, float]]:
    index = library.derived(CONFIG)
    rows = np.flatnonzero(index.alive).tolist()
    names, sentences = COVERAGE.shares(index, WORDS, WORDS.query(request), rows)
    pairs = zip(names.tolist(), sentences.tolist(), strict=True)
    return dict(zip(map(index.name, rows), pairs, strict=True))


def test_a_request_with_all_the_words_covers_the_whole() -> None:
    """Name and first sentence count apart; what follows the first sentence does not count."""
    library = Library([tool("book_flight", "Book a seat. Needs a passport."), tool("other", "")])
    shares = shares_by_name(library, "I want to book a flight with a seat at the window")
    assert shares["book_flight"] == (1.0, 1.0)
    assert shares["other"] == (0.0, 0.0)


def test_rare_words_cover_more_than_common_ones() -> None:
    """A verb that every tool has says little about one of them."""
    library = Library(
        [tool(f"get_{word}", f"Get the {word}.") for word in ("flight", "hotel", "weather")]
    )
    by_rare = shares_by_name(library, "weather")["get_weather"][0]
    by_common = shares_by_name(library, "get")["get_weather"][0]
    assert 0 < by_common < by_rare < 1
    assert by_rare + by_common == pytest.approx(1.0)


def test_rows_may_come_in_any_order_and_twice() -> None:
    """Each answer stands where its row stands."""
    library = Library([tool("flight", "Fly."), tool("hotel", "Sleep."), tool("taxi", "Drive.")])
    index = library.derived(CONFIG)
    hotel, taxi = index.row("hotel"), index.row("taxi")
    assert hotel is not None
    assert taxi is not None
    names, _ = COVERAGE.shares(index, WORDS, ["hotel"], [taxi, hotel, taxi, hotel])
    assert names.tolist() == [0, 1, 0, 1]


def test_nothing_asked_covers_nothing() -> None:
    """Neither an empty request nor an empty list of rows is an error."""
    index = Library([tool("flight", "Fly.")]).derived(CONFIG)
    assert [part.tolist() for part in COVERAGE.shares(index, WORDS, [], [0])] == [[0], [0]]
    assert [part.tolist() for part in COVERAGE.shares(index, WORDS, ["fly"], [])] == [[], []]


def test_stored_terms_come_back() -> None:
    """Bytes give the same arrays again."""
    built = COVERAGE.build([tool("get_weather", "Weather in a city."), tool("x", "")])
    back = COVERAGE.from_bytes(COVERAGE.to_bytes(built))
    assert (back.keys.tolist(), back.starts.tolist()) == (
        built.keys.tolist(),
        built.starts.tolist(),
    )


def test_a_splitter_of_ones_own_is_not_stored() -> None:
    """Nothing can tell later whether it still splits in the same way."""
    assert CoverageChannel().fingerprint
    assert CoverageChannel(split=str.split).fingerprint == ""


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(SOME_WORDS), max_size=5).map(" ".join), min_size=1, max_size=12
    ),
    removed=st.sets(st.integers(0, 11)),
    request_words=st.lists(st.sampled_from(SOME_WORDS), max_size=4).map(" ".join),
)
def test_an_index_that_grew_answers_like_one_made_at_once(
    texts: list[str], removed: set[int], request_words: str
) -> None:
    """Tools that came one by one, and those that went, leave no trace in the shares."""
    tools = [tool(f"tool_{number}", text) for number, text in enumerate(texts)]
    grown = Library([])
    grown.derived(CONFIG)
    for one in tools:
        grown = grown.with_tools([one])
        grown.derived(CONFIG)
    gone = [tools[number].name for number in removed if number < len(tools)]
    grown = grown.without(gone)
    fresh = Library([one for one in tools if one.name not in gone])
    assert shares_by_name(grown, request_words) == shares_by_name(fresh, request_words)


async def test_the_stage_lifts_the_tools_whose_words_are_all_there() -> None:
    """Behind a ranking by words, a request for two things finds both before what has half."""
    library = Library(
        [
            tool("book_flight", "Book a flight."),
            tool(
                "hotel_ownership_history", "Tell who owned a hotel and when, with the prices paid."
            ),
            tool("find_taxi", "Find a taxi."),
        ]
    )
    request = "Find prices of a hotel and book a flight, then find a taxi"
    ranked = Survivors.of(library, Coverage().channels).add(
        {"hotel_ownership_history": 1.0, "book_flight": 0.9, "find_taxi": 0.9}
    )
    survivors = await Coverage(name=0.15, sentence=0.15)(request, SubGoal(intent=request), ranked)
    assert [hit.definition.name for hit in survivors.hits] == [
        "book_flight",
        "find_taxi",
        "hotel_ownership_history",
    ]
    assert all(0 <= hit.fields["coverage"] < 0.301 for hit in survivors.hits)


async def test_the_stage_ranks_nothing_anew() -> None:
    """Without a ranking before it, it changes nothing."""
    survivors = Survivors.of(Library([tool("fly", "Fly.")]), Coverage().channels)
    assert (await Coverage()("fly", SubGoal(intent="fly"), survivors)).hits == ()


def test_negative_weights_are_refused() -> None:
    """Coverage is never held against a tool."""
    with pytest.raises(UsageError, match="must not be negative"):
        Coverage(name=-1)
