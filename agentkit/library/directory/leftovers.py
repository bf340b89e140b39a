"""What killed writers left in a folder, and how large the folder is."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from agentkit.library.directory.folder import Folder

_SECONDS_OF_A_WRITER = 3600
"""A draft of a writer on another machine may be in use; none is for so long."""


def clear_leftovers(folder: Folder) -> None:
    """Delete drafts that nobody will complete."""
    if not folder.local.is_dir():
        return
    with folder.translated(folder.local):
        for draft in folder.local.glob("draft-*.tmp"):
            with suppress(FileNotFoundError):  # a writer is just done with it
                if time.time() - draft.stat().st_mtime > _SECONDS_OF_A_WRITER:
                    draft.unlink()


def size_of(folder: Path) -> int:
    """Bytes of all files of a folder; of those that vanish meanwhile, none."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
