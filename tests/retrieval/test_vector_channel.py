"""The vectors of tools in the index: exact answers, however the index came to be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.retrieval import vectors
from agentkit.retrieval.embedders import FunctionEmbedder
from agentkit.retrieval.index import IndexConfig
from agentkit.retrieval.vectors import VectorChannel, vector_text


def hashed(texts: list[str]) -> np.ndarray:
    """A vector of 96 numbers for each text, the sum of one for each of its words."""
    rows = np.zeros((len(texts), 96))
    for row, text in enumerate(texts):
        for word in text.lower().replace(":", " ").replace(".", " ").split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
            rows[row] += np.random.default_rng(seed).normal(size=96)
    return rows


CHANNEL = VectorChannel(embedder=FunctionEmbedder(hashed, name="hashed-words"))
CONFIG = IndexConfig(channels=(CHANNEL,))


def tool(number: int) -> ToolDefinition:
    return ToolDefinition.from_schema(
        f"tool_{number}", f"Does {number % 7} and {number}. Well.", {}
    )


def cosines_by_name(library: Library, text: str) -> dict[str, float]:
    index = library.derived(CONFIG)
    rows = np.flatnonzero(index.alive)
    (found,) = CHANNEL.cosines(index, CHANNEL.query([text]), rows)
    return {
        index.names[row]: float(cosine) for row, cosine in zip(rows.tolist(), found, strict=True)
    }


def test_a_tool_is_its_name_and_first_sentence() -> None:
    """Identifiers are read as words; what follows the first sentence is left to other evidence."""
    definition = ToolDefinition.from_schema("get_current-time.now", "The time. In a zone.", {})
    assert vector_text(definition) == "get current time now: The time."


@pytest.mark.parametrize("dimensions", [3, 96, 256, 1536])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300), texts=st.integers(1, 9))
def test_equal_tools_are_equally_near(dimensions: int, seed: int, count: int, texts: int) -> None:
    """To the last bit, wherever they stand and whatever else is compared: so that ties are ties."""
    chance = np.random.default_rng(seed)
    same = chance.normal(size=dimensions)
    vectors = np.where(
        np.arange(count)[:, None] % 3 == 0, same, chance.normal(size=(count, dimensions))
    )
    channel = VectorChannel(embedder=FunctionEmbedder(lambda _: vectors, name="given"))
    index = Library(map(tool, range(count))).derived(IndexConfig(channels=(channel,)))
    asked = chance.normal(size=(texts, dimensions))
    asked = (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32)
    alone = channel.cosines(index, asked[:1], np.array([0]))[0, 0]
    together = channel.cosines(index, asked, np.arange(count))[0, ::3]
    assert (together == alone).all()
    assert alone == pytest.approx(asked[0] @ same / np.linalg.norm(same), abs=0.02)


def test_cosines_are_those_of_the_model_within_rounding() -> None:
    """Eight bits a number cost less than a hundredth of a cosine."""
    library = Library([tool(number) for number in range(50)])
    (query,) = CHANNEL.query(["tool 3: Does 3"])
    for name, cosine in cosines_by_name(library, "tool 3: Does 3").items():
        (row,) = CHANNEL.query([vector_text(library[name].definition)])
        assert cosine == pytest.approx(float(query @ row), abs=0.01)


def test_the_nearest_are_found_among_many() -> None:
    """Comparing signs first finds nearly all of the ten nearest of a thousand tools."""
    library = Library([tool(number) for number in range(1_000)])
    index = library.derived(CONFIG)
    kept = 0
    for number in range(0, 1_000, 20):
        query = CHANNEL.query([f"tool {number} : Does it with {number % 7} ."])
        rows = CHANNEL.nearest(index, query[0], 10)
        assert len(rows) == 10
        exact = CHANNEL.cosines(index, query, np.arange(1_000))[0]
        kept += len(set(np.argsort(-exact)[:10].tolist()) & set(rows.tolist()))
    assert kept >= 0.95 * 500


def test_a_small_catalogue_is_compared_exactly() -> None:
    """Up to 512 tools the nearest are the nearest."""
    index = Library([tool(number) for number in range(500)]).derived(CONFIG)
    query = CHANNEL.query(["tool 3 does it"])
    exact = CHANNEL.cosines(index, query, np.arange(500))[0]
    rows = CHANNEL.nearest(index, query[0], 7)
    assert sorted(np.argsort(-exact)[:7].tolist()) == rows.tolist()


def test_only_rows_in_question_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a masked nor a removed tool comes up."""
    monkeypatch.setattr(vectors, "_ALWAYS_RESCORED", 4)
    whole = Library([tool(number) for number in range(300)])
    whole.derived(CONFIG)
    library = whole.without(["tool_7"])
    index = library.derived(CONFIG)
    assert len(index) == 299
    (query,) = CHANNEL.query(["tool 7: Does 7"])
    mask = index.alive.copy()
    mask[::2] = False
    assert not set(CHANNEL.nearest(index, query, 3).tolist()) - set(np.flatnonzero(index.alive))
    assert not set(CHANNEL.nearest(index, query, 3, mask).tolist()) - set(np.flatnonzero(mask))


def test_a_text_that_the_model_does_not_know_is_near_nothing() -> None:
    """Zeros stay zeros: no tool is near, every cosine is 0."""
    index = Library([tool(1)]).derived(CONFIG)
    zeros = np.zeros((1, 96), np.float32)
    assert not len(CHANNEL.nearest(index, zeros[0], 5))
    assert CHANNEL.cosines(index, zeros, np.array([0])).tolist() == [[0.0]]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=25))
def test_an_index_that_grew_answers_like_one_that_was_built(
    changes: list[tuple[bool, int]],
) -> None:
    """Adding and removing tools one at a time leaves the cosines of those that remain."""
    library = Library([tool(number) for number in range(5)])
    library.derived(CONFIG)
    for adds, number in changes:
        if adds:
            library = library.with_tools([tool(number)])
        elif f"tool_{number}" in library.tools:
            library = library.without([f"tool_{number}"])
        library.derived(CONFIG)
    remaining = [library[name].definition for name in library.tools]
    fresh = Library(remaining)
    assert cosines_by_name(library, "tool 3: Does 3") == pytest.approx(
        cosines_by_name(fresh, "tool 3: Does 3")
    )


class Plugged:
    """An embedder of somebody else's, which answers with whatever ``answer`` gives."""

    fingerprint = "plugged"

    def __init__(self, answer: Callable[[list[str]], object]) -> None:
        self.answer = answer

    def embed(self, texts: list[str]) -> object:
        return self.answer(texts)


@pytest.mark.parametrize(
    "answer",
    [
        lambda _texts: None,
        lambda texts: [1.0] * len(texts),
        lambda texts: [[1.0]] * (len(texts) - 1),
        lambda texts: [[1.0], [1.0, 2.0], *[[1.0]] * (len(texts) - 2)],
        lambda texts: [["near"]] * len(texts),
        lambda texts: np.full((len(texts), 2), np.nan),
        lambda texts: np.full((len(texts), 2), 1e300),
    ],
)
def test_an_embedder_that_answers_nonsense_is_told(answer: Callable[[list[str]], object]) -> None:
    """Whatever kind of embedder it is, no index is made of it."""
    config = IndexConfig(channels=(VectorChannel(embedder=Plugged(answer)),))
    with pytest.raises(UsageError, match="the embedding function returned"):
        Library([tool(1), tool(2), tool(3)]).derived(config)


@pytest.mark.parametrize("tools", [3, 600])
def test_a_model_that_changes_its_dimensions_is_told(tools: int) -> None:
    """At a query as well as at an insert, the error says what to do."""
    dimensions = [4]
    embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), dimensions[0])))
    channel = VectorChannel(embedder=embedder)
    config = IndexConfig(channels=(channel,))
    library = Library(map(tool, range(tools)))
    index = library.derived(config)
    dimensions[0] = 6
    with pytest.raises(UsageError, match="vectors of 6 and of 4 numbers"):
        channel.nearest(index, channel.query(["one"])[0], 5)
    more = library.with_tools(map(tool, range(tools, 2 * tools)))
    with pytest.raises(UsageError, match=r"different shapes.*\(4,\).*\(6,\)"):
        more.derived(config)
