"""Seals on derived files: what this user's programs wrote themselves, and nobody else.

A checkpoint, a search index or a kept copy saves working something out again, so whoever can write
it could decide what models see, past the reviewed truth. Each is therefore sealed with a key that
lies in the user's cache, outside of every project. A file with another seal, from another machine,
a merge or an attacker, is made anew. A keyed BLAKE2 costs a millisecond for a megabyte.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path

from agentkit.errors import DefinitionError, StoreFormatError
from agentkit.fetch import cache_directory
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

logger = logging.getLogger(__name__)

SEAL_BYTES = 32
_KEY_FILE = "seal.key"


def seal(content: bytes, what: str) -> bytes:
    """The seal of a file's content.

    Args:
        content: All that is to be believed later.
        what: The kind of file and the place that it belongs to, so that none passes for another.

    Example:
        >>> len(seal(b"tools", "checkpoint")) == SEAL_BYTES
        True
    """
    begun = sealing(what)
    begun.update(content)
    return begun.digest()


def sealing(what: str) -> blake2b:
    """A hash that ``update`` makes the seal of; to be copied where thousands are wanted."""
    key = _key(cache_directory())
    return blake2b(digest_size=SEAL_BYTES, key=key, person=_person(what))


def is_sealed(content: bytes, found: bytes, what: str) -> bool:
    """Whether the seal is that of the content, made with the key of this user."""
    return compare_digest(seal(content, what), found)


def _person(what: str) -> bytes:
    return blake2b(what.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@cache
def _key(folder: Path) -> bytes:
    """The key of this user; where none can be kept, one that holds for this process."""
    path = folder / _KEY_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _kept(path) or _made(path)
    except OSError as error:
        logger.warning(
            "%s can not be kept (%s), so what is derived from a library is made anew at each "
            "start; name a folder that can be written in AGENTKIT_CACHE",
            path,
            error.strerror,
        )
        return secrets.token_bytes(SEAL_BYTES)


def _kept(path: Path) -> bytes | None:
    """The key that is there; None where there is none, or where others may know it."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            content = file.read(SEAL_BYTES + 1)
    except FileNotFoundError:
        return None
    is_ours = os.name != "posix" or (state.st_uid == os.geteuid() and not state.st_mode & 0o077)
    return content if is_ours and len(content) == SEAL_BYTES else None


def _made(path: Path) -> bytes:
    """A new key; of several processes that make one at a time, the last one's holds."""
    draft = path.with_name(f"{_KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(SEAL_BYTES))
    try:
        os.link(draft, path)  # never over a key that another process just made
    except FileExistsError:
        if _kept(path) is None:
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return _kept(path) or secrets.token_bytes(SEAL_BYTES)


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
