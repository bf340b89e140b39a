"""The index of a stored library is kept in the user's cache, and never serves what is not so any more."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field

import numpy as np
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


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of one's own; the folder in it where indexes are kept."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "index"


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


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-100])


def changed(path):
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(one ^ 1 for one in content[middle : middle + 200])
    path.write_bytes(content)


def made_a_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "damage",
    [
        cut_off,
        changed,
        made_a_link,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"junk"),
        lambda path: np.savez(path, digests=np.zeros(300, "S64")),
        lambda path: np.savez(path, digests=np.array([object()], object)),
    ],
)
def test_damage_is_noticed_and_mended(store_at, cache, caplog, damage):
    """Damaged files are said in the log and made anew; answers stay right."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    expected = answer(store.load())
    (path,) = cache.iterdir()
    damage(path)
    channel = Observed()
    assert answer(store_at().load(), channel) == expected
    assert sum(channel.built) == 300


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_an_index_that_somebody_else_may_write_is_not_believed(store_at, cache, caplog):
    """Whoever writes one decides what models see, so that it has to be this user's alone."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    expected = answer(store.load())
    (path,) = cache.iterdir()
    assert (path.stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o600, 0o700)
    path.chmod(0o666)
    channel = Observed()
    assert answer(store_at().load(), channel) == expected
    assert sum(channel.built) == 300
    assert "others may write it" in caplog.text


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(store_at, cache, caplog):
    """What cannot be written is worked out again next time, and the log says so."""
    cache.parent.write_text("no folder")
    store = store_at()
    commit(store, *map(tool, range(300)))
    with caplog.at_level(logging.INFO, logger="agentkit"):
        assert answer(store.load()) == fresh(store.load())
    assert "not kept for the next start" in caplog.text


def test_a_library_of_no_store_is_not_kept(cache):
    """What a program made for itself leaves no file."""
    answer(Library(map(tool, range(300))))
    assert not cache.exists()


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


def test_what_nobody_used_for_long_goes(store_at, cache, monkeypatch):
    """The folder does not grow with the number of versions."""
    monkeypatch.setattr("agentkit.retrieval.index._MOST_FILES", 3)
    store = store_at()
    for step in range(6):
        commit(store, *(tool(number, f"text{step}") for number in range(260)))
        answer(store_at().load())
    channel = Observed()
    answer(store_at().load(), channel)
    assert channel.built == []
    assert len(list(cache.iterdir())) == 3


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
