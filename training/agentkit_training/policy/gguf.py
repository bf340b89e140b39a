"""What a GGUF file says of itself, read before its weights: architecture and special tokens.

transformers reads the weights. It is told the special tokens from here, because releases of it
have made the first token of a turn the end of text. Reading takes milliseconds: word lists, which
take other readers seconds, are passed over.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from agentkit_training.errors import PolicyError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_FORMATS = MappingProxyType(
    {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"}
    | {10: "<Q", 11: "<q", 12: "<d"}
)
_LONGEST = 1 << 20  # bytes of one text; chat templates have some thousands
_MOST_ENTRIES = 1 << 16
_MOST_DIMENSIONS = 8

_Value: TypeAlias = str | int | float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufHeader:
    """The part of a GGUF file's metadata that training needs.

    Attributes:
        architecture: Such as ``llama`` or ``gemma3``.
        tensors: How many tensors the file holds.
        special_ids: Token ids by their name in transformers, such as ``eos_token``.
        turn_end_id: The token that ends a turn, where the file tells it from the end of text.
    """

    architecture: str
    tensors: int
    special_ids: tuple[tuple[str, int], ...]
    turn_end_id: int | None


_SPECIAL = MappingProxyType(
    {
        "bos_token": "tokenizer.ggml.bos_token_id",
        "eos_token": "tokenizer.ggml.eos_token_id",
        "unk_token": "tokenizer.ggml.unknown_token_id",
        "pad_token": "tokenizer.ggml.padding_token_id",
    }
)


def read_header(path: Path) -> GgufHeader:
    """What the file says of itself. It may come from anywhere; every length is held against it.

    Raises:
        PolicyError: It is no GGUF file, is cut off or damaged, or is an adapter.
    """
    try:
        with path.open("rb") as file:
            tensors, entries = _metadata(file)
            _check_tensors(file, tensors)
    except (EOFError, ValueError, OSError) as error:
        raise PolicyError(
            f"{path} is damaged or no whole GGUF file: {error}; get it again from where it came"
        ) from error
    if entries.get("general.type") == "adapter":
        raise PolicyError(
            f"{path} holds an adapter and no model; give the file of the model that it belongs to"
        )
    special = {name: entries.get(key) for name, key in _SPECIAL.items()}
    turn_end = entries.get("tokenizer.ggml.eot_token_id")
    return GgufHeader(
        architecture=str(entries.get("general.architecture", "")),
        tensors=tensors,
        special_ids=tuple((name, id_) for name, id_ in special.items() if isinstance(id_, int)),
        turn_end_id=turn_end if isinstance(turn_end, int) else None,
    )


def _metadata(file: BinaryIO) -> tuple[int, dict[str, _Value]]:
    """The number of tensors, and every entry that is a number or a text."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin with the letters GGUF")
    version, tensors, count = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in _VERSIONS:
        raise ValueError(f"it is of GGUF version {version}, and 2 and 3 are known")
    if count > _MOST_ENTRIES:
        raise ValueError(f"it claims to have {count:,} entries")
    return tensors, dict(_entries(file, count))


def _entries(file: BinaryIO, count: int) -> Iterator[tuple[str, _Value]]:
    for _ in range(count):
        key = _text(file)
        (kind,) = struct.unpack("<I", _exactly(file, 4))
        if kind == _ARRAY:
            _skip_array(file)
        elif kind == _STRING:
            yield key, _text(file)
        else:
            yield key, struct.unpack(_format(kind), _exactly(file, _size(kind)))[0]


def _check_tensors(file: BinaryIO, count: int) -> None:
    """Read where the tensors lie; a file that was cut off ends before one of them begins."""
    last = 0
    for _ in range(count):
        _text(file)
        (dimensions,) = struct.unpack("<I", _exactly(file, 4))
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor has {dimensions} dimensions")
        _skip(file, 8 * dimensions + 4)
        (offset,) = struct.unpack("<Q", _exactly(file, 8))
        last = max(last, offset)
    size = os.fstat(file.fileno()).st_size
    if count and file.tell() + last >= size:
        raise EOFError(f"it ends after {size:,} bytes, before its last tensor begins")


def _skip_array(file: BinaryIO) -> None:
    kind, count = struct.unpack("<IQ", _exactly(file, 12))
    if kind != _STRING:
        _skip(file, count * _size(kind))
        return
    for _ in range(count):
        _skip(file, _length(file))


def _format(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"a value is of kind {kind}, which is not known")
    return _FORMATS[kind]


def _size(kind: int) -> int:
    return struct.calcsize(_format(kind))


def _text(file: BinaryIO) -> str:
    length = _length(file)
    if length > _LONGEST:
        raise ValueError(f"a text of {length:,} bytes is too long")
    return _exactly(file, length).decode(errors="replace")


def _length(file: BinaryIO) -> int:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    return int(length)


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise EOFError(f"it ends after {file.tell():,} bytes, in the middle of a value")
    return data


def _skip(file: BinaryIO, count: int) -> None:
    """Go on ``count`` bytes later, which the file must have: seeking itself goes anywhere."""
    here, end = file.tell(), os.fstat(file.fileno()).st_size
    if count > end - here:
        raise EOFError(f"it ends after {end:,} bytes, in the middle of a value")
    file.seek(here + count)
