"""Definitions of a store that were found to have the digests under which they are kept.

Working a digest out costs as much as reading the definition, so a store that is loaded again and
again remembers which texts it has looked at: sixteen bytes for each, in the user's cache. They are
made with the key of ``agentkit.library.sealing``, so nobody else can vouch for a text.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from agentkit.errors import DefinitionError, StoreFormatError
from agentkit.fetch import cache_directory
from agentkit.library.sealing import seal, sealing
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

logger = logging.getLogger(__name__)

_MARK_BYTES = 16
_FEW = 64
"""So many new texts are looked at again sooner than a file is written."""

_MOST = 200_000


class VerifiedDefinitions:
    """Reads definitions and holds them to their digests, each text once for a user and a store.

    Args:
        place: Names the store, without secrets.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._begun = sealing("definition")
        self._known: set[bytes] | None = None
        self._new = 0

    def read(self, digest: str, origin: str, body: str) -> ToolDefinition:
        """The definition that a store holds, if it has the digest under which it is kept.

        Args:
            digest: The digest that the store names.
            origin: Where the definition came from, as JSON; no digest covers it.
            body: The rest of it, as JSON.

        Raises:
            StoreFormatError: It is no definition, or was changed where it lies.
        """
        try:
            record = read_json(body)
            record["origin"] = read_json(origin)
            definition = ToolDefinition.from_json(record)
            self._check(definition, digest, body)
        except (ValueError, TypeError, AttributeError, RecursionError, DefinitionError) as error:
            raise StoreFormatError(
                f"{self._place} holds a definition that can not be read ({digest}): {error}. "
                "Nothing of it is used; restore a backup"
            ) from error
        return definition

    def _check(self, definition: ToolDefinition, digest: str, text: str) -> None:
        mark = self._mark(digest, text)
        known = self._known = self._kept() if self._known is None else self._known
        if mark not in known:
            actual = definition.digest
            if actual != digest:
                raise StoreFormatError(
                    f"{self._place} holds a definition of {definition.name!r} that was changed "
                    f"where it lies: it has the digest {actual[:12]}, and is kept under "
                    f"{digest[:12]}. Nothing of it is used; 'agentkit check' lists what is "
                    "damaged, and a copy ('agentkit store copy BACKUP NEW') restores it"
                )
            known.add(mark)
            self._new += 1
        definition.__dict__["digest"] = digest  # where the cached property looks first

    def vouch(self, written: Iterable[tuple[str, str]]) -> None:
        """Take texts that were just written, each behind its definition's digest, as looked at."""
        marks = [self._mark(digest, text) for digest, text in written]
        if len(marks) > 1:  # a single one is looked at as quickly as it is remembered
            self._known = self._kept() if self._known is None else self._known
            self._known.update(marks)
            self._new += len(marks)
            self.keep()

    def keep(self) -> None:
        """Remember what was looked at, where that is much."""
        if self._new < _FEW or not self._known:
            return
        marks = self._known if len(self._known) <= _MOST else ()
        self._new = 0
        path = self._path()
        draft = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(b"".join(sorted(marks)))
            draft.replace(path)
        except OSError as error:
            logger.info("%s can not be written (%s); digests are worked out again", path, error)

    def _mark(self, digest: str, text: str) -> bytes:
        begun = self._begun.copy()
        begun.update(f"{digest} {text}".encode("utf-8", "surrogatepass"))
        return begun.digest()[:_MARK_BYTES]

    def _kept(self) -> set[bytes]:
        try:
            content = self._path().read_bytes()
        except OSError:
            return set()
        ends = range(_MARK_BYTES, len(content) + 1, _MARK_BYTES)
        return {content[end - _MARK_BYTES : end] for end in ends}

    def _path(self) -> Path:
        name = seal(self._place.encode("utf-8", "surrogatepass"), "store").hex()[:32]
        return cache_directory() / "verified" / name
