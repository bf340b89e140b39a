"""What a GGUF file says of itself: the few words at its beginning, read without loading it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from agentkit.errors import ModelNotFoundError

MAGIC = b"GGUF"
ARCHITECTURE, KIND, ADAPTER_KIND = "general.architecture", "general.type", "adapter.type"

_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a number by its kind."""

_STRING, _ARRAY = 8, 9
_LONGEST = 1 << 16  # bytes of a text that anybody reads here; chat templates are skipped


def texts_of(path: Path, wanted: Sequence[str]) -> dict[str, str]:
    """The texts of a GGUF file under these keys; a key that it does not have is left out.

    Reading stops when all are found. The file may come from anywhere: what it says of its own
    lengths is held against what is there.

    Args:
        path: A GGUF file.
        wanted: Keys, such as ``general.architecture``.

    Raises:
        ModelNotFoundError: The file is cut off or damaged before all keys were read.
    """
    found: dict[str, str] = {}
    try:
        with path.open("rb") as file:
            for key, text in _entries(file):
                if key in wanted:
                    found[key] = text
                if len(found) == len(wanted):
                    break
    except (EOFError, ValueError) as error:
        raise ModelNotFoundError(
            f"{path} is damaged or no whole GGUF file: {error}; get it again from where it came"
        ) from error
    return found


def _entries(file: BinaryIO) -> Iterator[tuple[str, str]]:
    """Key and text of each entry that is a text; the others are passed over."""
    _exactly(file, len(MAGIC))
    version, _, count = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in {2, 3}:
        raise ValueError(f"it is of GGUF version {version}, and 2 and 3 are known")
    for _ in range(count):
        key = _text(file)
        (kind,) = struct.unpack("<I", _exactly(file, 4))
        if kind == _STRING:
            yield key, _text(file)
        else:
            _pass_over(file, kind)


def _pass_over(file: BinaryIO, kind: int) -> None:
    count = 1
    if kind == _ARRAY:
        kind, count = struct.unpack("<IQ", _exactly(file, 12))
    if kind == _STRING:
        for _ in range(count):
            _skip(file, _length(file))
    elif kind in _BYTES:
        _skip(file, count * _BYTES[kind])
    else:
        raise ValueError(f"a value is of kind {kind}, which is not known")


def _text(file: BinaryIO) -> str:
    length = _length(file)
    text = _exactly(file, min(length, _LONGEST)).decode(errors="replace")
    _skip(file, max(0, length - _LONGEST))
    return text


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
