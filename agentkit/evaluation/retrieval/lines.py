"""Reading JSON lines, plain or compressed, with the place of each mistake."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import DatasetError
from agentkit.messages import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One record and where it stands.

    Attributes:
        record: The decoded JSON object.
        path: Its file.
        number: Its line, from 1.
    """

    record: JsonObject
    path: Path
    number: int

    def wrong(self, problem: str) -> DatasetError:
        """The error that says what is wrong with this record."""
        return DatasetError(f"{self.path}:{self.number}: {problem}")


def read_lines(path: Path) -> Iterator[Line]:
    """The records of a file of JSON lines; blank lines are passed over.

    Args:
        path: Compressed with gzip when its name ends in ``.gz``.

    Raises:
        DatasetError: The file can not be read, or a line is no JSON object.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield Line(record=_decoded(line, path, number), path=path, number=number)
    except (OSError, EOFError, zlib.error) as error:
        where = f"{path}, after line {number}" if number else f"{path}"
        raise DatasetError(f"{where}: can not be read ({error})") from error


def _decoded(line: bytes, path: Path, number: int) -> JsonObject:
    try:
        record = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{path}:{number}: not JSON ({error}); the file holds one JSON object a line, "
            "compressed only if its name ends in .gz"
        ) from error
    if not isinstance(record, dict):
        raise DatasetError(
            f"{path}:{number}: a {type(record).__name__}; the file holds one JSON object a line"
        )
    return record
