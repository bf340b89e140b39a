"""Definitions in the files that commands are given."""

from __future__ import annotations

import gzip
import zlib

import click

from agentkit.errors import UsageError
from agentkit.tools.sources.json_schema import DefinitionBatch, definitions_from_json

_GZIP = b"\x1f\x8b"


def read_definitions(name: str) -> DefinitionBatch:
    """The definitions in a file.

    Args:
        name: JSON or JSON lines, plain or compressed with gzip, whatever its name; ``-`` for stdin.

    Raises:
        UsageError: The file can not be read.
    """
    try:
        with click.open_file(name, "rb") as file:
            data = file.read()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name}: can not be read ({reason})") from error
    return definitions_from_json(data, reference=name)
