"""Embedding models: what is accepted as one, and the static word vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agentkit.errors import MissingExtraError, UsageError
from agentkit.retrieval import word_vectors
from agentkit.retrieval.embedders import FunctionEmbedder, as_embedder
from agentkit.retrieval.word_vectors import StaticEmbedder, WordPieces, packaged_folder

VOCABULARY = {
    "<0xE4>": 0, "▁": 1, "a": 2, "b": 3, "c": 4, "▁a": 5, "bc": 6, "▁abc": 7, "▁b": 8, "天": 9,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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


def test_a_text_is_the_sum_of_the_vectors_of_its_pieces(folder: Path) -> None:
    """Words are lower-cased, identifiers split, and every known piece counts."""
    rows = StaticEmbedder(folder).embed(["ABC", "abc_b", "abcB"])
    assert rows.dtype == np.float32
    assert np.flatnonzero(rows[0][1:]).tolist() == [6]
    assert (rows[1] == rows[2]).all()
    assert np.flatnonzero(rows[1][1:]).tolist() == [6, 7]
    assert rows[1][0] == pytest.approx(3.5 + 4.0)


def test_what_the_table_does_not_know_is_a_row_of_zeros(folder: Path) -> None:
    """Empty texts, signs, emoji and unknown scripts give zeros beside texts that are known."""
    rows = StaticEmbedder(folder).embed(["", "!?", "\U0001f600", "مرحبا", "天", "a"])
    assert [bool(row.any()) for row in rows] == [False, False, False, False, True, True]


def test_a_very_long_text_is_cut(folder: Path) -> None:
    """What stands behind the first eight thousand characters changes nothing."""
    embedder = StaticEmbedder(folder)
    long, longer = embedder.embed(["abc " * 2_000, "abc " * 2_000 + "b " * 50_000])
    assert (long == longer).all()


def test_pairs_learnt_first_merge_first() -> None:
    """The lowest number wins, wherever in the word the pair stands."""
    pieces = WordPieces({"▁": 0, "a": 1, "b": 2, "c": 3, "bc": 4, "▁a": 5, "ab": 6})
    assert pieces.of("abc") == [5, 4]


def test_a_word_of_a_hundred_thousand_letters_takes_no_quadratic_time() -> None:
    """Long words are cut, so that merging stays cheap."""
    pieces = WordPieces({"▁": 0, "a": 1, "aa": 2, "aaaa": 3})
    assert len(pieces.of("a" * 100_000)) <= 8_000


def test_the_fingerprint_tells_tables_apart(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same files give the same fingerprint, other numbers another."""
    other = write_files(
        tmp_path_factory.mktemp("other"), np.ones((len(VOCABULARY), 12), np.float16)
    )
    assert StaticEmbedder(folder).fingerprint == StaticEmbedder(folder).fingerprint
    assert StaticEmbedder(folder).fingerprint != StaticEmbedder(other).fingerprint


def test_a_table_of_another_form_is_refused(tmp_path: Path) -> None:
    """The error names the file and what it holds."""
    write_files(tmp_path, np.ones((10, 12), np.float32), dtype="F32")
    with pytest.raises(UsageError, match=r"l2_supercat_256\.safetensors.*F32"):
        StaticEmbedder(tmp_path).embed(["a"])


def test_asking_for_vectors_that_are_not_installed_names_the_pip_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Explicit use of the absent extra is an error that says what to type."""
    monkeypatch.setattr(word_vectors, "_PACKAGE", "no_such_package_of_vectors")
    assert word_vectors.packaged_embedder() is None
    with pytest.raises(MissingExtraError, match=r"pip install \"agentkit-evolve\[vectors\]\""):
        StaticEmbedder().embed(["a"])


def test_a_function_an_encoder_and_an_embedder_are_embedding_models(folder: Path) -> None:
    """Whatever turns texts into rows is taken as it is."""
    static = StaticEmbedder(folder)
    assert as_embedder(static) is static
    for model in (Encoder(), Encoder().encode):
        embedder = as_embedder(model)
        assert embedder.fingerprint.startswith("probe:3x2:")
        assert embedder.embed(("one", "three")).tolist() == [[3.0, 1.0], [5.0, 1.0]]


def test_anything_else_is_no_embedding_model() -> None:
    """The error says what would be one."""
    with pytest.raises(UsageError, match="a function that turns a list of texts"):
        as_embedder("all-MiniLM-L6-v2")


@pytest.mark.parametrize("answer", [[[1.0, 2.0]], [1.0, 2.0], [[float("nan")], [1.0]]])
def test_a_function_that_answers_nonsense_is_named(answer: object) -> None:
    """Too few rows, flat lists and numbers that are none raise where they arise."""
    with pytest.raises(UsageError, match="the embedding function returned"):
        FunctionEmbedder(lambda _texts: answer).embed(["one", "two"])


def test_functions_are_told_apart_by_what_they_answer() -> None:
    """Without a name the fingerprint follows the vectors; with one it is the name."""

    def lengths(texts: list[str]) -> list[list[float]]:
        return [[len(text), 1.0] for text in texts]

    def words(texts: list[str]) -> list[list[float]]:
        return [[text.count(" "), 5.0] for text in texts]

    assert FunctionEmbedder(lengths).fingerprint == FunctionEmbedder(lengths).fingerprint
    assert FunctionEmbedder(lengths).fingerprint != FunctionEmbedder(words).fingerprint
    assert FunctionEmbedder(lengths, name="lengths-1").fingerprint == "lengths-1"


@pytest.mark.weights
def test_the_packaged_vectors_know_synonyms() -> None:
    """A ticket for a plane is nearer to a flight than to the weather."""
    if packaged_folder() is None:
        pytest.skip('the word vectors are not installed: pip install "agentkit-evolve[vectors]"')
    query, flight, weather = StaticEmbedder().embed(["plane ticket", "book_flight", "get_weather"])
    assert query @ flight > query @ weather
