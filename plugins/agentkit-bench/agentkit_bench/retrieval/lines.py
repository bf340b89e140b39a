"""The lines of a corpus, each with its place; one that is no JSON object ends the reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import DatasetError
from agentkit.evaluation.task_files import read_json_lines
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

    A line that is none is an error rather than a reason: without it the catalogue would be
    another one, and recall over it another number.

    Args:
        path: Compressed with gzip when its name ends in ``.gz``.

    Raises:
        DatasetError: The file can not be read, or a line is no JSON object.
    """
    for line in read_json_lines(path):
        if line.record is None:
            raise DatasetError(
                f"{path}:{line.number}: {line.reason}; the file holds one JSON object a line, "
                "compressed only if its name ends in .gz"
            )
        yield Line(record=line.record, path=path, number=line.number)
