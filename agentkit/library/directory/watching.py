"""Hearing of commits to a folder: by looking for the next file of the history."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TypeAlias

from agentkit.errors import StoreError
from agentkit.library.directory.folder import Folder

_LOOK_AGAIN_SECONDS = 0.02

_Signature: TypeAlias = tuple[int, int, int] | None


class FolderWatch:
    """Looks at two names in the history: the last one, and the one that comes next.

    A look costs some microseconds, and works on every file system, also on those of other machines.
    What git puts in the place of the history is heard too.
    """

    def __init__(self, folder: Folder, *, place: int) -> None:
        self._folder = folder
        self._place = place
        self._last = self._sign(place)
        self._is_closed = False

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        deadline = time.monotonic() + timeout_seconds
        while not self._has_moved():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _LOOK_AGAIN_SECONDS))
        return True

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        self._is_closed = True

    def _has_moved(self) -> bool:
        if self._is_closed:
            raise StoreError(f"this watch of {self._folder.path} is closed; make a new one")
        if self._sign(self._place) != self._last:  # another branch: begin anew with what it has
            self._place = 0
        start = self._place
        while self._sign(self._place + 1) is not None:
            self._place += 1
        has_moved = self._place != start or self._sign(self._place) != self._last
        self._last = self._sign(self._place)
        return has_moved

    def _sign(self, place: int) -> _Signature:
        path: Path = self._folder.entry(place)
        with self._folder.translated(path):
            try:
                found = path.stat()
            except FileNotFoundError:
                return None
        return found.st_mtime_ns, found.st_ino, found.st_size
