"""Static word vectors: no network, no torch, a sixteen-megabyte table that is read where it lies.

The vectors are those of the package ``wordllama`` (MIT; token embeddings of a Llama model, trained
for sentence similarity and cut to 256 dimensions). Its two data files are read without importing
the package: the import takes 0.5 CPU s and 110 MB and sets up logging for the whole process,
reading the files a tenth of that.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit.retrieval.embedders import probed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentkit.retrieval.embedders import FloatRows

    HalfTable: TypeAlias = NDArray[np.float16]

_PACKAGE = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]{1,40}")
"""Cut at forty characters: merging pieces takes quadratic time, and no real word is longer."""

_WORD_START = "▁"
_LONGEST_TEXT = 8_000
"""Characters; a mean over more than a thousand words says little about any of them."""

_BATCH = 256


@dataclass(frozen=True)
class StaticEmbedder:
    """The mean of the word vectors of a text, which knows words that are spelled differently.

    Words are lower-cased and identifiers fall apart at humps and underscores first; letters that
    the table does not know are left out, so that a text in an unknown script is a row of zeros.
    The files are opened at the first use and never downloaded.

    Attributes:
        folder: Where the files lie, laid out as in the package; None for the installed package.
    """

    folder: Path | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the vectors of fixed texts."""
        return probed(self)

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """The sum of the word vectors of each text; zeros where no word is known.

        Raises:
            MissingExtraError: The package is not installed.
            UsageError: The files are not what they should be.
        """
        import numpy as np

        rows = np.zeros((len(texts), self._table.shape[1]), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [self._pieces.of(text) for text in texts[start : start + _BATCH]]
            filled = [start + place for place, pieces in enumerate(batch) if pieces]
            if filled:
                lengths = [len(pieces) for pieces in batch if pieces]
                vectors = self._table[[piece for pieces in batch for piece in pieces]]
                starts = np.concatenate(([0], np.cumsum(lengths[:-1], dtype=np.intp)))
                rows[filled] = np.add.reduceat(vectors, starts, axis=0, dtype=np.float32)
        return rows

    @cached_property
    def _table(self) -> HalfTable:
        return _table(self._files / _WEIGHTS)

    @cached_property
    def _pieces(self) -> WordPieces:
        path = self._files / _TOKENIZER
        return _read_pieces(path, path.stat().st_mtime_ns)

    @cached_property
    def _files(self) -> Path:
        folder = self.folder or packaged_folder()
        if folder is None:
            raise MissingExtraError(
                "StaticEmbedder()",
                package=_PACKAGE,
                install='pip install "agentkit-evolve[vectors]"',
            )
        return folder


class WordPieces:
    """Cuts words into the pieces of a byte-pair vocabulary.

    The vocabulary alone says how: of all neighbouring pairs that form a known piece, the one with
    the lowest number was learnt first and is merged first, as SentencePiece does it (Kudo and
    Richardson, EMNLP 2018).

    Args:
        vocabulary: Pieces and their numbers; the first piece of a word starts with ``▁``.

    Example:
        >>> pieces = WordPieces({"▁": 0, "a": 1, "b": 2, "c": 3, "▁a": 4, "bc": 5, "▁abc": 6})
        >>> pieces.of("ABC ab"), pieces.of("aXb")
        ([6, 4, 2], [4, 2])
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._of_word = lru_cache(maxsize=32_768)(self._merged)

    def of(self, text: str) -> list[int]:
        """The numbers of the pieces of the words of ``text``, in order."""
        text = _HUMPS.sub(" ", text[:_LONGEST_TEXT])
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
        return [piece for word in _WORD.findall(text.lower()) for piece in self._of_word(word)]

    def _merged(self, word: str) -> tuple[int, ...]:
        known = self._vocabulary
        pieces = [_WORD_START, *word]
        while True:
            pairs = [
                (known[pair], place)
                for place, (first, second) in enumerate(pairwise(pieces))
                if (pair := first + second) in known
            ]
            if not pairs:
                return tuple(
                    known[piece] for piece in pieces if piece in known and piece != _WORD_START
                )
            _, place = min(pairs)
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]


def packaged_embedder() -> StaticEmbedder | None:
    """The word vectors of the installed package; none when the extra ``vectors`` is absent."""
    return StaticEmbedder() if packaged_folder() is not None else None


def packaged_folder() -> Path | None:
    """Where the installed package keeps its files, if it is installed and has them."""
    found = find_spec(_PACKAGE)
    for location in (found and found.submodule_search_locations) or ():
        folder = Path(location)
        if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file():
            return folder
    return None


def _table(path: Path) -> HalfTable:
    """The one matrix of a safetensors file, mapped into memory rather than read.

    The form: eight bytes with the length of the header, the header as JSON, then the numbers
    (https://huggingface.co/docs/safetensors).
    """
    import numpy as np

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    tensors = list(header.values())
    if len(tensors) != 1 or tensors[0]["dtype"] != "F16" or len(tensors[0]["shape"]) != 2:
        raise UsageError(
            f"{path} should hold one matrix of 16-bit floats, but holds {header}; "
            "install a version of wordllama that the extra `vectors` names"
        )
    offset = 8 + length + tensors[0]["data_offsets"][0]
    return np.memmap(path, np.float16, "r", offset, tuple(tensors[0]["shape"]))


@lru_cache(maxsize=4)  # reading takes 60 ms, and every retriever has an embedder of its own
def _read_pieces(path: Path, _changed_ns: int) -> WordPieces:
    return WordPieces(_vocabulary(path))


def _vocabulary(path: Path) -> dict[str, int]:
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    return vocabulary
