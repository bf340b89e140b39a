"""What the URL of a directory store says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectoryUrl:
    """A URL ``dir:PATH`` or ``dir:PATH?format=json``.

    Attributes:
        path: The folder.
        form: How tools are written, ``yaml`` or ``json``; empty when the URL does not say.
    """

    path: Path
    form: str = ""

    @classmethod
    def parse(cls, url: str) -> DirectoryUrl:
        """The parts of a URL.

        ``dir:library``, ``dir:/data/library`` and ``dir:~/library`` are paths; ``dir:///data/library``
        is one too.

        Raises:
            UsageError: The URL names no folder, or asks for something else than a format.
        """
        place, _, query = url.partition(":")[2].partition("?")
        path = place.removeprefix("//")
        asked = dict(parse_qsl(query, keep_blank_values=True))
        if not path or not asked.keys() <= {"format"}:
            raise UsageError(
                f"{url!r} is not the URL of a directory store; write dir:library, "
                "dir:/data/library, or dir:library?format=json"
            )
        return cls(path=Path(path).expanduser(), form=asked.get("format", ""))


def folder_of(url: str) -> Path | None:
    """The folder of a directory store's URL, whether it is there or not; None for any other URL.

    Example:
        >>> print(folder_of("dir:library?format=json"), folder_of("sqlite:///library.db"))
        library None
    """
    return DirectoryUrl.parse(url).path if url.partition(":")[0].lower() == "dir" else None
