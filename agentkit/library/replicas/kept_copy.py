"""The newest library in a file, so that an edge can begin while its store is away."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import Any

from agentkit.episodes.replacing import for_owner
from agentkit.errors import AgentKitError, StoreFormatError
from agentkit.library.library import Library
from agentkit.library.sealing import seal
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

FORMAT_VERSION = 1
"""Version of the file's shape."""

_SEAL = ',"seal":"'
"""Begins the last member of the file, which covers all that stands before it."""


def write_copy(path: Path, library: Library) -> None:
    """Put a library into a file, whole or not at all.

    Raises:
        OSError: The file can not be written; the one that was there is as it was.
    """
    record = {
        "format": FORMAT_VERSION,
        "version": library.version,
        "digest": library.digest,
        "tools": [definition.to_json() for definition in library.definitions],
    }
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "w", encoding="utf-8", opener=for_owner) as file:
            content = json.dumps(record, separators=(",", ":"))
            file.write(f'{content[:-1]}{_SEAL}{_seal_of(content[:-1], path)}"}}')
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def read_copy(path: Path) -> Library | None:
    """The library of a file; None when there is no file.

    Raises:
        StoreFormatError: The file is damaged, no copy, or written by a newer agentkit.
    """
    try:
        content = path.read_text(encoding="utf-8")
        record = read_json(content)
        _check_format(record, path)
        library = Library(map(ToolDefinition.from_json, record["tools"]), version=record["version"])
        whole = type(library.version) is int and library.digest == record["digest"]
    except FileNotFoundError:
        return None
    except StoreFormatError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, AgentKitError) as error:
        raise StoreFormatError(
            f"{path} is no copy of a library ({type(error).__name__}: {error}); delete it, and a "
            "replica that reaches its store writes it anew"
        ) from error
    if not whole:
        raise StoreFormatError(
            f"{path} is not as it was written: its tools have another digest; delete it, and a "
            "replica that reaches its store writes it anew"
        )
    begun, _, found = content.rpartition(_SEAL)
    if not compare_digest(found.encode(), f'{_seal_of(begun, path)}"}}'.encode()):
        raise StoreFormatError(
            f"{path} was not written here by programs of this user, or was changed (its seal is "
            "another); delete it, and a replica that reaches its store writes it anew. Where homes "
            "do not last, set AGENTKIT_CACHE to a folder that does"
        )
    return library


def _seal_of(content: str, path: Path) -> str:
    return seal(content.encode(), f"kept copy {path.absolute()}").hex()


def _check_format(record: Any, path: Path) -> None:
    form = record["format"]
    if type(form) is not int or form < 1:
        raise TypeError(f"its format is {form!r}")
    if form > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {form}, this agentkit reads up to {FORMAT_VERSION}; upgrade "
            "agentkit-evolve, or delete the file"
        )
