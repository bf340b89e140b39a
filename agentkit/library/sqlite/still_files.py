"""Reading a SQLite file that nobody changes, where SQLite may not make its log beside it.

Even to read, SQLite wants to make a log. Where this user may not, such as on a read-only disk, and
there is none, the file is read as one that does not change. Another user may change it all the
same; what SQLite reads then is no state that the file ever had.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from agentkit.errors import StoreUnavailableError

State: TypeAlias = tuple[int, int, bool]
"""Size, time of the last change, and whether a log stands beside the file."""


def still_state(path: Path) -> State | None:
    """The state of a file that has to be read as one that does not change; None for any other."""
    state = None if os.access(path.parent, os.W_OK) else _state(path)
    return None if state is None or state[-1] else state


def uri_to_read(path: Path, state: State | None) -> str:
    """The file as SQLite opens it to read only.

    Args:
        path: The file, as an absolute path.
        state: See ``still_state``.
    """
    return f"{path.as_uri()}?mode=ro{'' if state is None else '&immutable=1'}"


def check_still(path: Path, state: State) -> None:
    """Refuse what was read of a file that changed meanwhile.

    Raises:
        StoreUnavailableError: It did.
    """
    if _state(path) != state:
        raise StoreUnavailableError(
            f"{path} was changed by another user while it was read, and this one may not write its "
            "folder, which SQLite needs to read beside a writer. Nothing was changed; open the "
            "store again, or give this user the right to write the folder"
        )


def _state(path: Path) -> State | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, path.with_name(f"{path.name}-wal").exists()
