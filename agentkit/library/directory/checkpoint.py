"""A copy of the newest library on this machine, so that a start does not read all of the history.

Losing it costs time and nothing else. It is known to belong to a history by the digest of the file
at its place, so that it is left aside after git put another branch there; and its seal says that
this user's programs wrote it, so that nobody else can put other tools there than the history has.
"""

from __future__ import annotations

import json
import logging
import os

from agentkit.errors import AgentKitError
from agentkit.library.directory.entries import FORMAT_VERSION, digest_of
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.past import Past
from agentkit.library.sealing import is_sealed, seal

logger = logging.getLogger(__name__)

_LEAST_BYTES = 100_000
"""So much of the history is read in less time than a checkpoint takes."""


class Checkpoint:
    """``local/newest.json``."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = folder.local / "newest.json"
        self._place = f"checkpoint {self._path.absolute()}"
        self._size = 0
        self._behind = 0

    def read(self) -> Past | None:
        """What the history came to at the checkpoint; None when none belongs to it."""
        self._behind = 0
        try:
            content = self._sealed_content()
            record = json.loads(content)
            if record["format"] != FORMAT_VERSION:
                return None
            entry = self._folder.entry(record["past"]["length"]).read_bytes()
            if digest_of(entry) != record["past"]["head"]:
                return None
            past = Past.from_json(record["past"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AgentKitError) as error:
            logger.warning(
                "%s is not believed (%s); the history is read instead", self._path, error
            )
            return None
        self._size = len(content)
        return past

    def _sealed_content(self) -> bytes:
        found, _, content = self._path.read_bytes().partition(b"\n")
        if not is_sealed(content, bytes.fromhex(found[:64].decode()), self._place):
            message = "another user or machine wrote it, or it was changed"
            raise ValueError(message)
        return content

    def grown(self, past: Past, size: int) -> None:
        """Write another one when so much of the history came behind the last that it pays.

        Args:
            past: What the history comes to now.
            size: Bytes of the files that came since the last call.
        """
        self._behind += size
        if self._behind <= max(_LEAST_BYTES, self._size // 2):
            return
        self._behind = 0  # where it can not be written now, it is tried when as much came again
        if not os.access(self._folder.local, os.W_OK):
            return
        record = {"format": FORMAT_VERSION, "past": past.to_json()}
        content = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        draft = self._folder.draft()
        try:
            draft.write_bytes(seal(content, self._place).hex().encode() + b"\n" + content)
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            logger.warning("%s can not be written (%s); starts stay slow", self._path, error)
            return
        self._size = len(content)
