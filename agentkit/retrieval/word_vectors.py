"""Static word vectors: no network, no torch, a sixteen-megabyte table that is read where it lies.

The vectors are those of the package ``wordllama`` (MIT; token embeddings of a Llama model, trained
for sentence similarity and cut to 256 dimensions). Its two data files are read without importing
the package: the import takes 0.5 CPU s and 110 MB and sets up logging for the whole process,
reading the files a tenth of that.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit.reading import open_plain, read_json
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

MEANING = 0.65
"""The weight of word vectors beside words on catalogues they were not trained on."""

VECTORS_FORMAT = "agentkit.vectors/1"
"""Format named in the header of a file of trained vectors."""

_ARRAYS = {"pieces": ("I32", "<i4"), "scales": ("F32", "<f4"), "rows": ("I8", "i1")}
_LARGEST_FILE = 16_000_000
_LARGEST_HEADER = 1_000_000
_LARGEST_SCALE = 8.0
"""Bound of a row's scale: its numbers, up to 128 times that, are kept in 16 bits and summed."""


@dataclass(frozen=True)
class StaticEmbedder:
    """The mean of the word vectors of a text, which knows words that are spelled differently.

    Words are lower-cased and identifiers fall apart at humps and underscores first; letters that
    the table does not know are left out, so that a text in an unknown script is a row of zeros.
    The files are opened at the first use and never downloaded.

    Attributes:
        folder: Where the files lie, laid out as in the package; None for the installed package.
        trained: Vectors that ``agentkit-train retriever`` fitted to requests; words that training
            never saw keep their own.
    """

    folder: Path | None = None
    trained: TrainedVectors | None = None

    @property
    def meaning(self) -> float:
        """The weight of these vectors beside words."""
        return MEANING if self.trained is None else self.trained.meaning

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the vectors of fixed texts, or that of the trained ones."""
        return probed(self) if self.trained is None else f"trained:{self.trained.digest}"

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

    def pieces_of(self, text: str) -> list[int]:
        """The rows of the word vectors that a text is made of, in order."""
        return self._pieces.of(text)

    def vectors_of(self, pieces: NDArray[np.int32]) -> FloatRows:
        """float32[pieces, dimensions]: the vectors of some pieces."""
        import numpy as np

        return self._table[pieces].astype(np.float32)

    @cached_property
    def _table(self) -> HalfTable:
        table = _table(self._files / _WEIGHTS)
        if self.trained is None:
            return table
        if StaticEmbedder(self._files).fingerprint != self.trained.base:
            raise UsageError(
                f"the trained vectors {self.trained.digest[:12]} changed other word vectors than "
                f"those in {self._files}; train them again with this release of wordllama"
            )
        return self.trained.laid_over(table)

    @cached_property
    def _pieces(self) -> WordPieces:
        path = self._files / _TOKENIZER
        return _read_pieces(path, path.stat().st_mtime_ns)

    @cached_property
    def _files(self) -> Path:
        return self.folder or installed_folder("StaticEmbedder()")


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedVectors:
    """Word vectors that were fitted to the requests of one store, as a file holds them.

    Only pieces of words that occurred in training are kept, as 8-bit numbers with a scale a row:
    at most 8.5 MB. Requests cannot be read back from them.

    Attributes:
        pieces: int32[pieces]: the rows of the word vectors that these take the place of.
        scales: float32[pieces]: what a row is multiplied by.
        rows: int8[pieces, dimensions].
        meaning: How much vectors should count beside words, as held-back requests chose it.
        digest: SHA-256 of the three arrays.
        base: The fingerprint of the word vectors that training began with.
        provenance: What they were trained on, as text: store, episodes, tools, time.
        figures: Recall before and after on requests that training never saw, by name.
    """

    pieces: NDArray[np.int32]
    scales: NDArray[np.float32]
    rows: NDArray[np.int8]
    meaning: float
    digest: str
    base: str
    provenance: Mapping[str, str]
    figures: Mapping[str, float]

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainedVectors) and other.digest == self.digest

    @classmethod
    def read(cls, path: Path | str) -> TrainedVectors:
        """Read a file that ``agentkit-train retriever`` wrote.

        Raises:
            UsageError: The file is not there, damaged, or of another format.
        """
        path = Path(path)
        try:
            with open_plain(path) as file:
                found = _read_trained(file)
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else f"{error}"
            raise UsageError(
                f"{path} cannot be read as trained word vectors: {why}; write it again with "
                "agentkit-train retriever"
            ) from error
        return found

    def laid_over(self, table: HalfTable) -> HalfTable:
        """The word vectors with these in their places.

        Raises:
            UsageError: They were trained on word vectors of another size.
        """
        import numpy as np

        if self.rows.shape[1] != table.shape[1] or self.pieces.max(initial=-1) >= len(table):
            raise UsageError(
                f"the trained vectors replace rows up to {self.pieces.max(initial=-1)} of "
                f"{self.rows.shape[1]} numbers, but the installed word vectors have {len(table)} "
                f"rows of {table.shape[1]}; train them again with this release"
            )
        found = np.array(table)
        found[self.pieces] = self.rows * self.scales[:, None]
        return found


def digest_of(
    pieces: NDArray[np.int32], scales: NDArray[np.float32], rows: NDArray[np.int8]
) -> str:
    """The digest of trained vectors: the SHA-256 of their three arrays."""
    found = hashlib.sha256()
    for array in (pieces, scales, rows):
        found.update(array.tobytes())
    return found.hexdigest()


def _read_trained(file: BinaryIO) -> TrainedVectors:
    """The arrays and what the header says of them.

    Raises:
        ValueError: Something is not as ``agentkit-train`` writes it; KeyError for what is missing.
    """
    import numpy as np

    header, _ = _read_header(file)
    metadata = _object(header.pop("__metadata__", {}))
    if metadata.get("format") != VECTORS_FORMAT:
        raise ValueError(
            f"its format is {metadata.get('format')!r}, and this release reads {VECTORS_FORMAT!r}"
        )
    body = file.read(_LARGEST_FILE + 1)
    if len(body) > _LARGEST_FILE:
        raise ValueError(f"it has more than {_LARGEST_FILE:,} bytes")
    arrays = {}
    for name, (code, kind) in _ARRAYS.items():
        entry = _object(header[name])
        first, last = entry["data_offsets"]
        if entry["dtype"] != code or not 0 <= first <= last <= len(body):
            raise ValueError(f"the array {name!r} is not as it should be")
        arrays[name] = np.frombuffer(body[first:last], kind).reshape(entry["shape"])
    pieces, scales, rows = arrays["pieces"], arrays["scales"], arrays["rows"]
    if not len(pieces) == len(scales) == len(rows) or rows.ndim != 2 or pieces.ndim != 1:
        raise ValueError("its arrays differ in length")
    if not (np.abs(scales) <= _LARGEST_SCALE).all() or pieces.min(initial=0) < 0:
        raise ValueError("it holds numbers that are too large or none, or rows below 0")
    meaning = float(metadata["meaning"])
    if not 0 <= meaning <= 1 or digest_of(pieces, scales, rows) != metadata["digest"]:
        raise ValueError("it is damaged: its numbers are not those that its digest names")
    return TrainedVectors(
        pieces=pieces,
        scales=scales,
        rows=rows,
        meaning=meaning,
        digest=metadata["digest"],
        base=metadata["base"],
        provenance={
            str(key): str(one) for key, one in _object(read_json(metadata["provenance"])).items()
        },
        figures={
            str(key): float(one) for key, one in _object(read_json(metadata["figures"])).items()
        },
    )


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
    """The folder of the installed package's files, if it is installed and has them."""
    found = find_spec(_PACKAGE)
    for location in (found and found.submodule_search_locations) or ():
        folder = Path(location)
        if (folder / _WEIGHTS).is_file() and (folder / _TOKENIZER).is_file():
            return folder
    return None


def installed_folder(needed_by: str) -> Path:
    """The folder of the installed package's files.

    Args:
        needed_by: What needs them, for the error.

    Raises:
        MissingExtraError: The package is not installed.
    """
    folder = packaged_folder()
    if folder is None:
        raise MissingExtraError(
            needed_by, package=_PACKAGE, install='pip install "agentkit-evolve[vectors]"'
        )
    return folder


def _table(path: Path) -> HalfTable:
    """The one matrix of a safetensors file, mapped into memory rather than read."""
    import numpy as np

    with path.open("rb") as file:
        header, start = _read_header(file)
    header.pop("__metadata__", None)
    tensors = list(header.values())
    if len(tensors) != 1 or tensors[0]["dtype"] != "F16" or len(tensors[0]["shape"]) != 2:
        raise UsageError(
            f"{path} should hold one matrix of 16-bit floats, but holds {header}; "
            "install a version of wordllama that the extra `vectors` names"
        )
    offset = start + tensors[0]["data_offsets"][0]
    return np.memmap(path, np.float16, "r", offset, tuple(tensors[0]["shape"]))


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where its numbers start.

    The form: eight bytes with the length of the header, the header as JSON, then the numbers
    (https://huggingface.co/docs/safetensors).

    Raises:
        ValueError: It has no such header.
    """
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= _LARGEST_HEADER:
        raise ValueError("it is not a safetensors file")
    return _object(read_json(file.read(length))), 8 + length


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is where an object belongs")  # noqa: TRY004 - of the file
    return value


@lru_cache(maxsize=4)  # reading takes 60 ms, and every retriever has an embedder of its own
def _read_pieces(path: Path, _changed_ns: int) -> WordPieces:
    return WordPieces(_vocabulary(path))


def _vocabulary(path: Path) -> dict[str, int]:
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    return vocabulary
