"""Libraries that commands only read: a store, or an artifact, perhaps at an earlier version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentkit.cli.stores import opened_to_read
from agentkit.errors import UsageError
from agentkit.interop import export as exporting
from agentkit.library import Store
from agentkit.library.opening import file_of

_VERSIONED = re.compile(r"(?P<place>.+)@(?P<version>\d+)")


@contextmanager
def read_source(place: str, *, version: int | None = None) -> Iterator[Store]:
    """What stands at a place: an artifact's file, or the URL of a store.

    Args:
        place: Which.
        version: A version that must be there; None for the newest.

    Raises:
        StoreError: There is nothing there, or not that version.
        ArtifactError: The file is an artifact that can not be used.
        UsageError: The file is something else.
    """
    path = Path(place).expanduser()
    if file_of(place) is None and (path.is_file() or not re.match(r"\w{2,}:", place)):
        yield exporting.open_artifact(f"artifact:{place}")
        return
    with opened_to_read(place) as store:
        if version is not None:
            store.load(version)
        yield store


def split_version(place: str) -> tuple[str, int | None]:
    """A place and the version behind its last ``@``; a file that is named so is left whole.

    Example:
        >>> split_version("library.db@3"), split_version("tools.json")
        (('library.db', 3), ('tools.json', None))
    """
    found = _VERSIONED.fullmatch(place)
    if found is None or Path(place).exists():
        return place, None
    try:
        return found["place"], int(found["version"])
    except ValueError as error:
        raise UsageError(f"{place!r} names no library version") from error


def label(place: str) -> str:
    """A place as it may be shown: without the password of a URL.

    Example:
        >>> label("postgres://ada:secret@host/tools"), label("tools.json")
        ('postgres://ada:***@host/tools', 'tools.json')
    """
    return re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:***@", place)
