"""Embedders, and indexes that are kept beside a store."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import MissingExtraError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.retrieval import IndexConfig, LexicalChannel, word_vectors
from agentkit.retrieval.embedders import FunctionEmbedder, as_embedder
from agentkit.retrieval.word_vectors import StaticEmbedder, WordPieces, packaged_folder

WORDS = ("weather", "loan", "mail", "time", "flight", "hotel", "map", "sum")


def tool(number, text="rocket"):
    summary = f"{text} {WORDS[number % 8]} {WORDS[number % 5]} {number % 13}"
    return ToolDefinition.from_schema(f"tool_{number}", summary, {})


@dataclass(frozen=True)
class Observed(LexicalChannel):
    """A lexical channel that remembers how many definitions it was built from."""

    fingerprint: str = LexicalChannel().fingerprint
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


@pytest.mark.parametrize("names", [("one", "other"), ("", "")])
def test_other_settings_are_other_data(store_at, names):
    """Nothing is read that was kept under another fingerprint, nor without one."""
    store = store_at()
    commit(store, *map(tool, range(300)))
    first, second = (Observed(fingerprint=name) for name in names)
    said = answer(store.load(), first)
    assert answer(store_at().load(), second) == said
    assert (sum(first.built), sum(second.built)) == (300, 300)


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


VOCABULARY = {
    "<0xE4>": 0, "▁": 1, "a": 2, "b": 3, "c": 4, "▁a": 5, "bc": 6, "▁abc": 7, "▁b": 8, "天": 9,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Files of word vectors: the row of piece n is 1 at place n, and half of n at place 0."""
    table = np.eye(len(VOCABULARY), 12, dtype=np.float16)
    table[:, 0] = np.arange(len(VOCABULARY)) / 2
    return write_files(tmp_path, table)


def write_files(folder: Path, table: np.ndarray, dtype: str = "F16") -> Path:
    header = {
        "embedding.weight": {
            "dtype": dtype,
            "shape": list(table.shape),
            "data_offsets": [0, table.nbytes],
        }
    }
    text = json.dumps(header).encode()
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    for path in (weights, tokenizer):
        path.parent.mkdir()
    weights.write_bytes(len(text).to_bytes(8, "little") + text + table.tobytes())
    tokenizer.write_text(json.dumps({"model": {"vocab": VOCABULARY}}), encoding="utf-8")
    return folder


class Encoder:
    """The part of a sentence-transformers model that matters here."""

    def encode(self, sentences: list[str]) -> np.ndarray:
        return np.array([[len(sentence), 1.0] for sentence in sentences])


def test_a_text_is_the_sum_of_the_vectors_of_its_pieces(folder):
    """Words are lower-cased, identifiers split, and every known piece counts."""
    rows = StaticEmbedder(folder).embed(["ABC", "abc_b", "abcB"])
    assert rows.dtype == np.float32
    assert np.flatnonzero(rows[0][1:]).tolist() == [6]
    assert (rows[1] == rows[2]).all()
    assert np.flatnonzero(rows[1][1:]).tolist() == [6, 7]
    assert rows[1][0] == pytest.approx(3.5 + 4.0)


def test_what_the_table_does_not_know_is_a_row_of_zeros(folder):
    """Empty texts, signs, emoji and unknown scripts give zeros beside texts that are known."""
    rows = StaticEmbedder(folder).embed(["", "!?", "\U0001f600", "مرحبا", "天", "a"])
    assert [bool(row.any()) for row in rows] == [False, False, False, False, True, True]


def test_a_very_long_text_is_cut(folder):
    """What stands behind the first eight thousand characters changes nothing."""
    embedder = StaticEmbedder(folder)
    long, longer = embedder.embed(["abc " * 2_000, "abc " * 2_000 + "b " * 50_000])
    assert (long == longer).all()


def test_pairs_learnt_first_merge_first():
    """The lowest number wins, wherever in the word the pair stands."""
    pieces = WordPieces({"▁": 0, "a": 1, "b": 2, "c": 3, "bc": 4, "▁a": 5, "ab": 6})
    assert pieces.of("abc") == [5, 4]


def test_a_word_of_a_hundred_thousand_letters_takes_no_quadratic_time():
    """Long words are cut, so that merging stays cheap."""
    pieces = WordPieces({"▁": 0, "a": 1, "aa": 2, "aaaa": 3})
    assert len(pieces.of("a" * 100_000)) <= 8_000


def test_the_fingerprint_tells_tables_apart(folder, tmp_path_factory):
    """The same files give the same fingerprint, other numbers another."""
    other = write_files(
        tmp_path_factory.mktemp("other"), np.ones((len(VOCABULARY), 12), np.float16)
    )
    assert StaticEmbedder(folder).fingerprint == StaticEmbedder(folder).fingerprint
    assert StaticEmbedder(folder).fingerprint != StaticEmbedder(other).fingerprint


def test_a_table_of_another_form_is_refused(tmp_path):
    """The error names the file and what it holds."""
    write_files(tmp_path, np.ones((10, 12), np.float32), dtype="F32")
    with pytest.raises(UsageError, match=r"l2_supercat_256\.safetensors.*F32"):
        StaticEmbedder(tmp_path).embed(["a"])


def test_asking_for_vectors_that_are_not_installed_names_the_pip_line(monkeypatch):
    """Explicit use of the absent extra is an error that says what to type."""
    monkeypatch.setattr(word_vectors, "_PACKAGE", "no_such_package_of_vectors")
    assert word_vectors.packaged_embedder() is None
    with pytest.raises(MissingExtraError, match=r"pip install \"agentkit-evolve\[vectors\]\""):
        StaticEmbedder().embed(["a"])


def test_a_function_an_encoder_and_an_embedder_are_embedding_models(folder):
    """Whatever turns texts into rows is taken as it is."""
    static = StaticEmbedder(folder)
    assert as_embedder(static) is static
    for model in (Encoder(), Encoder().encode):
        embedder = as_embedder(model)
        assert embedder.fingerprint.startswith("probe:3x2:")
        assert embedder.embed(("one", "three")).tolist() == [[3.0, 1.0], [5.0, 1.0]]


def test_anything_else_is_no_embedding_model():
    """The error says what would be one."""
    with pytest.raises(UsageError, match="a function that turns a list of texts"):
        as_embedder("all-MiniLM-L6-v2")


def test_functions_are_told_apart_by_what_they_answer():
    """Without a name the fingerprint follows the vectors; with one it is the name."""

    def lengths(texts: list[str]) -> list[list[float]]:
        return [[len(text), 1.0] for text in texts]

    def words(texts: list[str]) -> list[list[float]]:
        return [[text.count(" "), 5.0] for text in texts]

    assert FunctionEmbedder(lengths).fingerprint == FunctionEmbedder(lengths).fingerprint
    assert FunctionEmbedder(lengths).fingerprint != FunctionEmbedder(words).fingerprint
    assert FunctionEmbedder(lengths, name="lengths-1").fingerprint == "lengths-1"


@pytest.mark.weights
def test_the_packaged_vectors_know_synonyms():
    """A ticket for a plane is nearer to a flight than to the weather."""
    if packaged_folder() is None:
        pytest.skip('the word vectors are not installed: pip install "agentkit-evolve[vectors]"')
    query, flight, weather = StaticEmbedder().embed(["plane ticket", "book_flight", "get_weather"])
    assert query @ flight > query @ weather
