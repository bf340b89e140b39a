"""The index of a stored library is kept in the store, and never serves what is not so any more."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.retrieval import CascadeRetriever, IndexConfig, LexicalChannel

WORDS = ("weather", "loan", "mail", "time", "flight", "hotel", "map", "sum")


def tool(number, text="rocket"):
    summary = f"{text} {WORDS[number % 8]} {WORDS[number % 5]} {number % 13}"
    return ToolDefinition.from_schema(f"tool_{number}", summary, {})


@dataclass(frozen=True)
class Observed(LexicalChannel):
    """A lexical channel that remembers how many definitions it was built from."""

    built: list[int] = field(default_factory=list, compare=False)

    def build(self, definitions):
        self.built.append(len(definitions))
        return super().build(definitions)


@pytest.fixture
def store_at(tmp_path):
    """Opens the same file again and again, as programs do one after the other."""
    opened = []

    def open_again(**options):
        opened.append(SQLiteStore(tmp_path / "library.db", **options))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


def commit(store, *definitions, removals=()):
    version = store.load().version
    change = LibraryChange(
        proposal_id=f"step {version}", upserts=definitions, removals=tuple(removals)
    )
    store.commit(change, expected_version=version)


def answer(library, channel=None, query="rocket weather loan 7 tool_3"):
    """Names and scores of the best matches."""
    channel = channel or LexicalChannel()
    index = library.derived(IndexConfig(channels=(channel,)))
    scores = channel.match(index, channel.query(query)).scores()
    return len(index), [(index.names[row], score) for row, score in index.top(scores, 20)]


def fresh(library):
    return answer(Library(list(library)))


def test_reopening_a_file_builds_nothing_anew(store_at):
    """A second program reads what the first one worked out, and answers the same."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    first, second = Observed(), Observed()
    said = answer(store.load(), first)
    assert sum(first.built) == 300
    assert answer(store_at().load(), second) == said
    assert second.built == []


def test_only_what_is_new_is_built(store_at):
    """After edits, additions and removals the kept segments serve what has not changed."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    answer(store.load())
    commit(store, tool(7, "boat"), tool(300), removals=["tool_8"])
    channel = Observed()
    library = store_at().load()
    assert answer(library, channel) == fresh(library)
    assert channel.built == [2]


def test_other_settings_are_other_data(store_at):
    """A channel with other settings does not read the data of the first."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    answer(store.load())
    channel = Observed(saturation=2.5)
    answer(store_at().load(), channel)
    assert sum(channel.built) == 300


def test_a_channel_without_a_name_is_not_kept(store_at):
    """With a ``split`` of one's own the data are made again each time."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    answer(store.load(), LexicalChannel(split=str.split))
    channel = Observed(split=str.split)
    said = answer(store_at().load(), channel)
    assert sum(channel.built) == 300
    assert said == answer(Library(list(store.load())), LexicalChannel(split=str.split))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE derived SET body = zeroblob(40)", "damaged"),
        ("UPDATE derived SET body = substr(body, 1, 100)", "damaged"),
        ("UPDATE derived SET checksum = x'00'", "damaged"),
        ("DROP TABLE derived", "no such table"),
    ],
)
async def test_damage_is_noticed_and_mended(store_at, tmp_path, caplog, damage, said):
    """Damaged entries are said in the log and made anew; answers stay right."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    expected = answer(store.load())
    store.close()
    with closing(sqlite3.connect(tmp_path / "library.db")) as raw:
        raw.execute(damage)
        raw.commit()
    channel = Observed()
    with caplog.at_level(logging.INFO, logger="agentkit"):
        assert answer(store_at().load(), channel) == expected
    assert said in caplog.text
    assert sum(channel.built) == 300


def test_entries_that_are_whole_but_no_index_are_made_anew(store_at, caplog):
    """Bytes that nobody of us wrote are refused, whatever their checksum says."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    library = store.load()
    expected = answer(library)
    with closing(sqlite3.connect(store.path)) as raw:
        keys = [key for (key,) in raw.execute("SELECT key FROM derived")]
    for junk in (b"", b"junk", b"\x02\0\0\0\0\0\0\0[]", b"\x05\0\0\0\0\0\0\0[[1]]"):
        library.cache.put(dict.fromkeys(keys, junk))
        assert answer(store_at().load()) == expected


def test_a_locked_file_costs_time_and_nothing_else(store_at, tmp_path, caplog):
    """What cannot be written is worked out again next time, and the log says so."""
    store = store_at(timeout_seconds=0.05)
    commit(store, *map(tool, range(300)))
    with closing(sqlite3.connect(tmp_path / "library.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with caplog.at_level(logging.INFO, logger="agentkit"):
            assert answer(store.load()) == fresh(store.load())
    assert "not kept for the next start" in caplog.text
    channel = Observed()
    answer(store_at().load(), channel)
    assert sum(channel.built) == 300


def test_a_crash_while_writing_leaves_the_file_sound(store_at):
    """Nothing half-written is ever read, and tools are not touched."""
    store = store_at()
    commit(store, *map(tool, range(300)))

    def power_cut(sql, _):
        if "DELETE FROM derived" in sql:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        answer(store_at(tracer=power_cut).load())
    channel = Observed()
    assert answer(store_at().load(), channel) == fresh(store.load())
    assert sum(channel.built) == 300


def test_two_programs_may_keep_at_once(store_at):
    """Both write; each reads what is there, and both answer right."""
    one, two = store_at(), store_at()
    commit(one, *map(tool, range(300)))
    older = two.load()
    commit(one, *map(tool, range(300, 600)))
    newer = one.load()
    assert answer(older) == fresh(older)
    assert answer(newer) == fresh(newer)
    assert answer(store_at().load(1)) == fresh(older)
    assert answer(store_at().load()) == fresh(newer)


def test_what_nobody_uses_any_more_goes(store_at):
    """The table does not grow with the number of versions."""
    store = store_at()
    for step in range(12):
        commit(store, *(tool(number, f"text{step}") for number in range(260)))
        answer(store_at().load())
    with closing(sqlite3.connect(store.path)) as raw:
        ((entries,),) = raw.execute("SELECT count(*) FROM derived")
    assert entries <= 4 * 2 + 1


def test_a_library_outlives_its_store(store_at):
    """Once the store is closed the index is made in memory."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    library = store.load()
    store.close()
    assert answer(library) == fresh(library)


@settings(max_examples=10)
@given(
    st.lists(
        st.one_of(
            st.sets(st.integers(0, 30), min_size=1, max_size=20),  # removed, if there
            st.dictionaries(st.integers(0, 30), st.sampled_from(WORDS), min_size=1, max_size=20),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_history_gives_the_answers_of_a_fresh_index(tmp_path_factory, changes):
    """Whatever was kept of earlier versions, each program that opens the file answers right."""
    path = tmp_path_factory.mktemp("kept") / "library.db"
    for change in changes:
        store = SQLiteStore(path)
        known = store.load()
        if isinstance(change, set):
            removals = [name for number in change if (name := f"tool_{number}") in known]
            if removals:
                commit(store, removals=removals)
        else:
            commit(store, *(tool(number, text) for number, text in change.items()))
        for version in (None, max(0, known.version - 1)):
            reopened = SQLiteStore(path)
            library = reopened.load(version)
            assert answer(library) == fresh(library)
            reopened.close()
        store.close()


async def test_a_retriever_finds_the_same_after_reopening(store_at):
    """The whole cascade, not its channels alone."""
    store = store_at()
    commit(store, *map(tool, range(400)))
    retriever = CascadeRetriever()
    before = await retriever.retrieve("a loan by mail, use tool_44", store.load())
    after = await CascadeRetriever().retrieve("a loan by mail, use tool_44", store_at().load())
    assert after.hits == before.hits
    assert after.cards == before.cards
