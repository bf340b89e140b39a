"""``LibraryCache``: what is known of a remote library, kept in one file for the next start."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import AgentKitError, StoreFormatError
from agentkit.library.events import ChainHead, LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.wire import Head, definition_from_json, definition_to_json
from agentkit.library.sealing import read_sealed, write_sealed

logger = logging.getLogger(__name__)

FILE_NAME = "library.json"
_FORMAT = 2

NOTHING = Head(
    version=0, digest=Library().digest, tools=0, versions=(), events=ChainHead(sequence=0, hash="")
)
"""The head of a library of which nothing was heard yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known of a library, all of it checked.

    Attributes:
        head: What the server said last.
        etag: The ETag of that; empty where nothing was heard.
        library: The snapshot at the head's version.
        events: The chain, perhaps not to its end: without a key it is read when asked for.
        is_verified: Whether the library is what its signed events say.
    """

    head: Head = NOTHING
    etag: str = ""
    library: Library = field(default_factory=Library)
    events: tuple[LibraryEvent, ...] = ()
    is_verified: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether anything is known."""
        return self.head is not NOTHING

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence

    def to_json(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        return {
            "head": self.head.to_json(),
            "etag": self.etag,
            "tools": [definition_to_json(tool.definition) for tool in self.library],
            "events": [event.to_json() for event in self.events],
            "is_verified": self.is_verified,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Known:
        """The inverse of ``to_json``."""
        head = Head.from_json(record["head"])
        tools = map(definition_from_json, record["tools"])
        return cls(
            head=head,
            etag=record["etag"],
            library=Library(tools, version=head.version),
            events=tuple(map(LibraryEvent.from_json, record["events"])),
            is_verified=record["is_verified"],
        )


class LibraryCache:
    """Keeps what is known of one library in a folder. It is a help and no need.

    The file is sealed: only what this user's programs wrote for this library is believed.

    Args:
        folder: Made when it is absent; None keeps nothing.
        base: The URL of the library.
    """

    def __init__(self, folder: Path | None, base: str) -> None:
        self._folder = folder
        self._what = f"library cache of {base}"

    def read(self) -> Known | None:
        """What was known last; None where there is nothing that can be used."""
        if self._folder is None:
            return None
        try:
            content = read_sealed(self._folder / FILE_NAME, self._what)
            record = None if content is None else json.loads(content)
            if record is None or record["format"] != _FORMAT:
                return None
            return Known.from_json(record)
        except (OSError, StoreFormatError) as error:
            logger.warning("the cache is not used, a new one is begun: %s", error)
        except (AgentKitError, KeyError, TypeError, ValueError) as error:
            logger.warning("the cache can not be read, a new one is begun: %s", error)
        return None

    def keep(self, known: Known) -> None:
        """Keep it for the next start."""
        if self._folder is None:
            return
        record = {"format": _FORMAT, **known.to_json()}
        content = json.dumps(record, separators=(",", ":"), check_circular=False).encode()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_sealed(self._folder / FILE_NAME, content, self._what)
        except OSError as error:
            logger.warning("the cache can not be written, so nothing is kept there: %s", error)
            self._folder = None
