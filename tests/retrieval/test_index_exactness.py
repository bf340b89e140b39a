"""An index that grew answers like a fresh one, nearest first, and a larger library loses nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.retrieval import (
    CascadeRetriever,
    IndexConfig,
    LexicalChannel,
    TextRanker,
    default_stages,
    vectors,
)
from agentkit.retrieval.embedders import FunctionEmbedder
from agentkit.retrieval.vectors import VectorChannel, vector_text
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Example, Specification
from agentkit_bench import TypedDagRetriever

WORDS = ("weather", "loan", "mail", "find the", "天气 预报", "طقس", "🌦 rain", "getHTTP", "")
NAMES = [f"tool_{number}" for number in range(12)] + [
    "first aid",
    "天气",
    "Tool_3",
    "reviews(tips)",
]
QUERIES = ("weather", "find a loan by mail", "tool_3", "first aid", "天气", "http rain", "")
WORDS_OF = LexicalChannel()
CHANNELS = (WORDS_OF,)
CONFIG = IndexConfig(channels=CHANNELS)


def definition(name, text, parameter):
    schema = {"properties": {parameter: {"type": "string", "description": text[::-1]}}}
    return ToolDefinition.from_schema(name, text, schema)


texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
definitions = st.builds(
    definition, st.sampled_from(NAMES), texts, st.sampled_from(["city", "loanTerm", "q"])
)
steps = st.lists(
    st.one_of(
        st.lists(definitions, min_size=1, max_size=5, unique_by=lambda one: one.name),
        st.sets(st.sampled_from(NAMES), max_size=5),
    ),
    max_size=12,
)


def changed(library, step):
    return library.without(step) if isinstance(step, set) else library.with_tools(step)


def answers(library, config=CONFIG):
    """Everything that the index of a library says, by tool name."""
    index = library.derived(config)
    found = [len(index)]
    for query in QUERIES:
        matches = WORDS_OF.match(index, WORDS_OF.query(query))
        ranked = index.top(matches.scores(), 5)
        shared = dict(
            zip((row for row, _ in ranked), matches.shared([row for row, _ in ranked]), strict=True)
        )
        found.append([(index.names[row], score, shared[row]) for row, score in ranked])
        found.append(WORDS_OF.unknown(index, WORDS_OF.query(query)))
    return found


@given(steps)
def test_a_grown_index_answers_like_a_fresh_one(changes):
    """After every change the same tools, scores and order; later changes leave snapshots alone."""
    snapshots = [Library()]
    said = [answers(snapshots[0])]
    for step in changes:
        snapshots.append(changed(snapshots[-1], step))
        said.append(answers(snapshots[-1]))
        assert said[-1] == answers(Library(list(snapshots[-1])))
    assert [answers(library) for library in snapshots] == said


def test_reading_the_name_of_a_removed_row_does_not_bring_the_tool_back():
    """Whoever walks over all rows, those of removed and edited tools included, changes nothing."""
    before = Library([definition(f"t{n}", "weather", "q") for n in range(100)])
    before.derived(CONFIG)
    after = before.without(["t1"]).with_tools([definition("t2", "loan", "q")])
    index = after.derived(CONFIG)
    assert index.size == 101
    for row in reversed(range(index.size)):
        assert index.names[row] == f"t{row}" or row == 100
    assert index.row("t1") is None
    assert index.row("t2") == 100


def test_many_single_inserts_and_removals_keep_few_segments():
    """Segments merge as in a binary counter, and rows of removed tools do not pile up."""
    tools = [definition(f"t{n}", f"{WORDS[n % 8]} {n % 17}", "q") for n in range(400)]
    library = Library()
    for place, tool in enumerate(tools):
        library = library.with_tools([tool])
        if place % 3 == 0:
            library = library.without([f"t{place // 2}"])
        index = library.derived(CONFIG)
        assert len(index) == len(library)
        assert len(index.parts) <= 8
        assert index.size <= 2 * len(library) + 64
    assert answers(library) == answers(Library(list(library)))


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]), max_size=600),
    st.integers(0, 40),
    st.booleans(),
)
def test_top_is_a_prefix_of_the_full_order(scores, count, masked):
    """The highest come first, ties by name; nothing at or below 0 is given."""
    np = pytest.importorskip("numpy")
    library = Library(
        [ToolDefinition(name=f"t{place * 7919 % 601}") for place in range(len(scores))]
    )
    index = library.derived(IndexConfig())
    array = np.array(scores, np.float32)
    mask = np.arange(len(scores)) % 3 != 0 if masked else None
    rows = [row for row in range(len(scores)) if scores[row] > 0 and (mask is None or mask[row])]
    full = sorted(rows, key=lambda row: (-scores[row], index.names[row]))
    assert index.top(array, count, mask) == [(row, scores[row]) for row in full[:count]]


def hashed(texts: list[str]) -> np.ndarray:
    """A vector of 96 numbers for each text, the sum of one for each of its words."""
    rows = np.zeros((len(texts), 96))
    for row, text in enumerate(texts):
        for word in text.lower().replace(":", " ").replace(".", " ").split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
            rows[row] += np.random.default_rng(seed).normal(size=96)
    return rows


CHANNEL = VectorChannel(embedder=FunctionEmbedder(hashed, name="hashed-words"))
VECTORS = IndexConfig(channels=(CHANNEL,))


def tool(number: int) -> ToolDefinition:
    return ToolDefinition.from_schema(
        f"tool_{number}", f"Does {number % 7} and {number}. Well.", {}
    )


def cosines_by_name(library: Library, text: str) -> dict[str, float]:
    index = library.derived(VECTORS)
    rows = np.flatnonzero(index.alive)
    (found,) = CHANNEL.cosines(index, CHANNEL.query([text]), rows)
    return {
        index.names[row]: float(cosine) for row, cosine in zip(rows.tolist(), found, strict=True)
    }


def test_a_tool_is_its_name_and_first_sentence():
    """Identifiers are read as words; what follows the first sentence is left to other evidence."""
    definition = ToolDefinition.from_schema("get_current-time.now", "The time. In a zone.", {})
    assert vector_text(definition) == "get current time now: The time."


@pytest.mark.parametrize("dimensions", [3, 96, 256, 1536])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300), texts=st.integers(1, 9))
def test_equal_tools_are_equally_near(dimensions, seed, count, texts):
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


def test_cosines_are_those_of_the_model_within_rounding():
    """Eight bits a number cost less than a hundredth of a cosine."""
    library = Library([tool(number) for number in range(50)])
    (query,) = CHANNEL.query(["tool 3: Does 3"])
    for name, cosine in cosines_by_name(library, "tool 3: Does 3").items():
        (row,) = CHANNEL.query([vector_text(library[name].definition)])
        assert cosine == pytest.approx(float(query @ row), abs=0.01)


def test_the_nearest_are_found_among_many():
    """Comparing signs first finds nearly all of the ten nearest of a thousand tools."""
    library = Library([tool(number) for number in range(1_000)])
    index = library.derived(VECTORS)
    kept = 0
    for number in range(0, 1_000, 20):
        query = CHANNEL.query([f"tool {number} : Does it with {number % 7} ."])
        rows = CHANNEL.nearest(index, query[0], 10)
        assert len(rows) == 10
        exact = CHANNEL.cosines(index, query, np.arange(1_000))[0]
        kept += len(set(np.argsort(-exact)[:10].tolist()) & set(rows.tolist()))
    assert kept >= 0.95 * 500


def test_a_small_catalogue_is_compared_exactly():
    """Up to 512 tools the nearest are the nearest."""
    index = Library([tool(number) for number in range(500)]).derived(VECTORS)
    query = CHANNEL.query(["tool 3 does it"])
    exact = CHANNEL.cosines(index, query, np.arange(500))[0]
    rows = CHANNEL.nearest(index, query[0], 7)
    assert sorted(np.argsort(-exact)[:7].tolist()) == rows.tolist()


def test_only_rows_in_question_are_near(monkeypatch):
    """Neither a masked nor a removed tool comes up."""
    monkeypatch.setattr(vectors, "_ALWAYS_RESCORED", 4)
    whole = Library([tool(number) for number in range(300)])
    whole.derived(VECTORS)
    library = whole.without(["tool_7"])
    index = library.derived(VECTORS)
    assert len(index) == 299
    (query,) = CHANNEL.query(["tool 7: Does 7"])
    mask = index.alive.copy()
    mask[::2] = False
    assert not set(CHANNEL.nearest(index, query, 3).tolist()) - set(np.flatnonzero(index.alive))
    assert not set(CHANNEL.nearest(index, query, 3, mask).tolist()) - set(np.flatnonzero(mask))


def test_a_text_that_the_model_does_not_know_is_near_nothing():
    """Zeros stay zeros: no tool is near, every cosine is 0."""
    index = Library([tool(1)]).derived(VECTORS)
    zeros = np.zeros((1, 96), np.float32)
    assert not len(CHANNEL.nearest(index, zeros[0], 5))
    assert CHANNEL.cosines(index, zeros, np.array([0])).tolist() == [[0.0]]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=25))
def test_an_index_that_grew_answers_like_one_that_was_built(changes):
    """Adding and removing tools one at a time leaves the cosines of those that remain."""
    library = Library([tool(number) for number in range(5)])
    library.derived(VECTORS)
    for adds, number in changes:
        if adds:
            library = library.with_tools([tool(number)])
        elif f"tool_{number}" in library.tools:
            library = library.without([f"tool_{number}"])
        library.derived(VECTORS)
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
def test_an_embedder_that_answers_nonsense_is_told(answer):
    """Whatever kind of embedder it is, no index is made of it."""
    config = IndexConfig(channels=(VectorChannel(embedder=Plugged(answer)),))
    with pytest.raises(UsageError, match="the embedding function returned"):
        Library([tool(1), tool(2), tool(3)]).derived(config)


@pytest.mark.parametrize("tools", [3, 600])
def test_a_model_that_changes_its_dimensions_is_told(tools):
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


GROWING_WORDS = ("rocket", "weather", "loan", "mail", "find", "fuel", "price", "天气")
ALL = 10**9
LINE = re.compile(r"^(\d+)\. (tool_\d+)", re.MULTILINE)


def growing_tool(number, words, children=()):
    definition = ToolDefinition.from_schema(
        f"tool_{number}",
        " ".join(words),
        {"properties": {"value": {"type": ("number", "boolean")[number % 2]}}},
    )
    calls = ", ".join(f"tools[{child!r}]()" for child in children)
    return replace(
        definition,
        specification=Specification(pre=(f"value != {number}",)),
        examples=(Example(arguments={"value": number}, result=0),),
        body={"format": 2, "source": f"def f(): return [{calls}]"} if calls else None,
    )


@st.composite
def growing(draw):
    """Some tools, more tools, and a request."""
    texts = draw(
        st.lists(st.lists(st.sampled_from(GROWING_WORDS), max_size=4), min_size=1, max_size=24)
    )
    tools = []
    for number, words in enumerate(texts):
        before = st.sampled_from([f"tool_{one}" for one in range(number)] or ["tool_0"])
        children = draw(st.lists(before, max_size=2)) if number else ()
        tools.append(growing_tool(number, words, children))
    kept = draw(st.integers(0, len(tools)))
    query = draw(st.lists(st.sampled_from(GROWING_WORDS), max_size=3).map(" ".join))
    return Library(tools[:kept]), Library(tools), query


def found(searching, query, library):
    result = asyncio.run(searching.retrieve(query, library))
    return [hit.definition.name for hit in result.hits]


def retriever(keep, stages=None):
    """Nothing but ``keep`` cuts."""
    return CascadeRetriever(
        stages=stages or default_stages(keep, embedder=None),
        shortlist=keep,
        offer=1,
        token_budget=ALL,
    )


def ranker(keep):
    """One stage that ranks and cuts; what comes behind it may reorder what is left."""
    return retriever(keep, [TextRanker(embedder=None, keep=keep)])


@given(growing())
def test_without_a_cap_nothing_found_gets_lost(made):
    """As long as stages keep every match, a larger library gives a superset."""
    smaller, larger, query = made
    everything = retriever(len(larger) + 1)
    assert set(found(everything, query, smaller)) <= set(found(everything, query, larger))


@given(growing(), st.integers(1, 6))
def test_at_the_cap_a_tool_gives_way_to_better_ones_only(made, keep):
    """What is lost is outranked, in the larger library, by as many tools as the cap holds."""
    smaller, larger, query = made
    everything = found(ranker(len(larger) + 1), query, larger)
    before, after = found(ranker(keep), query, smaller), found(ranker(keep), query, larger)
    lost = [name for name in before if name not in after]
    if lost:
        assert len(everything) > keep
    assert all(everything.index(name) >= keep for name in lost)


def consistent_judge(seed):
    """Scores each tool by itself; rejects one in four."""

    def points(name, level):
        return zlib.crc32(f"{seed} {level} {name}".encode())

    def answer(request):
        system = request.messages[0].text
        if "plan which" in system:
            return '[{"intent": "a step", "inputs": {"value": "number"}}]'
        shown = LINE.findall(request.messages[-1].text)
        if "You check" in system:
            return json.dumps({number: points(name, "L3") % 4 > 0 for number, name in shown})
        level = "L4" if "worked calls" in system else "L2"
        ordered = sorted(shown, key=lambda pair: -points(pair[1], level))
        return json.dumps([int(number) for number, _ in ordered])

    return FunctionModel(answer), points


def levels(seed, library, k2):
    model, points = consistent_judge(seed)
    paper = TypedDagRetriever(model, k2=k2)
    (cascade,) = asyncio.run(paper.cascades("a request", library))
    return [level.tools for level in cascade.levels], points


@given(growing(), st.integers(0, 99))
def test_paper_mode_is_monotone_below_the_cap(made, seed):
    """With k2 as large as S1, S1 to S3 grow, and a step changes its tool for a better new one."""
    smaller, larger, _ = made
    before, points = levels(seed, smaller, len(larger) + 1)
    after, _ = levels(seed, larger, len(larger) + 1)
    assert all(set(old) <= set(new) for old, new in zip(before[:3], after[:3], strict=True))
    if before[3] and after[3] != before[3]:
        assert after[3][0] not in smaller
        assert points(after[3][0], "L4") > points(before[3][0], "L4")


@given(growing(), st.integers(0, 99), st.integers(1, 6))
def test_paper_mode_loses_tools_at_the_cap_only(made, seed, k2):
    """A tool leaves S2 exactly when k2 tools of the larger S1 are ranked above it."""
    smaller, larger, _ = made
    before, points = levels(seed, smaller, k2)
    after, _ = levels(seed, larger, k2)
    assert set(before[0]) <= set(after[0])
    for name in before[1]:
        above = sum(points(other, "L2") > points(name, "L2") for other in after[0])
        assert (name in after[1]) == (above < k2)
    for name in set(before[2]) & set(after[1]):
        assert name in after[2]


def test_a_primitive_may_displace_what_was_found():
    """The paper's "any tool it displaces is itself a composite" does not hold for Algorithm 2."""
    smaller = Library([growing_tool(0, ["rocket"]), growing_tool(2, ["rocket"])])
    larger = smaller.with_tools([growing_tool(4, ["rocket"])])
    found = {
        (levels(seed, smaller, 32)[0][-1], levels(seed, larger, 32)[0][-1]) for seed in range(50)
    }
    assert {(("tool_0",), ("tool_4",)), (("tool_2",), ("tool_4",))} & found
