"""Definitions in the files that commands are given."""

from __future__ import annotations

import zlib

import click

from agentkit.errors import ReadingLimitError, UsageError
from agentkit.reading import unpacked
from agentkit.tools.sources.json_records import DefinitionBatch, definitions_from_json


def read_definitions(name: str) -> DefinitionBatch:
    """The definitions in a file of JSON or JSON lines, see ``read_content``.

    Raises:
        UsageError: The file can not be read.
    """
    return definitions_from_json(read_content(name), reference=name)


def read_content(name: str) -> bytes:
    """The content of a file.

    Args:
        name: Plain or compressed with gzip, whatever its name; ``-`` for stdin.

    Raises:
        UsageError: The file can not be read.
    """
    try:
        with click.open_file(name, "rb") as file:
            data: bytes = file.read()
        return unpacked(data)
    except (OSError, EOFError, zlib.error, ReadingLimitError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name}: can not be read ({reason})") from error
