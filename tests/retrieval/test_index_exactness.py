"""An index that grew, shrank and was edited answers exactly like one that was built at once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import IndexConfig, LexicalChannel

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
    """After every change: the same tools with the same scores in the same order."""
    library = Library()
    for step in changes:
        library = changed(library, step)
        assert answers(library) == answers(Library(list(library)))


@given(steps)
def test_older_snapshots_go_on_answering_as_before(changes):
    """Later changes, and the merges that they cause, leave earlier snapshots alone."""
    snapshots = [Library()]
    said = [answers(snapshots[0])]
    for step in changes:
        snapshots.append(changed(snapshots[-1], step))
        said.append(answers(snapshots[-1]))
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
