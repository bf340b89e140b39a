"""Seals on derived files: what this user's programs wrote themselves, and nobody else.

A search index or a kept copy saves working something out again, so whoever can write
it could decide what models see, past the reviewed truth. Each is therefore sealed with a key that
lies in the user's cache, outside of every project. A file with another seal, from another machine,
a merge or an attacker, is made anew. A keyed BLAKE2 costs a millisecond for a megabyte.
"""

from __future__ import annotations

import logging
import os
import secrets
from functools import cache
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path

from agentkit.episodes.replacing import replaced
from agentkit.errors import StoreFormatError
from agentkit.fetch import cache_directory

logger = logging.getLogger(__name__)

SEAL_BYTES = 32
_KEY_FILE = "seal.key"


def seal(content: bytes, what: str) -> bytes:
    """The seal of a file's content.

    Args:
        content: All that is to be believed later.
        what: The kind of file and the place that it belongs to, so that none passes for another.

    Example:
        >>> len(seal(b"tools", "kept copy")) == SEAL_BYTES
        True
    """
    person = blake2b(what.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    key = _key(cache_directory())
    return blake2b(content, digest_size=SEAL_BYTES, key=key, person=person).digest()


def write_sealed(path: Path, content: bytes, what: str) -> None:
    """Put sealed content into a file, whole or not at all, for this user alone.

    Raises:
        OSError: The file can not be written; the one that was there is as it was.
    """
    with replaced(path) as draft:
        draft.write_bytes(seal(content, what).hex().encode() + b"\n" + content)


def read_sealed(path: Path, what: str) -> bytes | None:
    """The content of a file that ``write_sealed`` wrote; None when there is none.

    Raises:
        StoreFormatError: It was changed, or another user or machine wrote it.
        OSError: It can not be read.
    """
    try:
        found, _, content = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    if not compare_digest(seal(content, what).hex().encode(), found):
        raise StoreFormatError(
            f"{path} was changed, or another user or machine wrote it; where homes do not last, "
            "set AGENTKIT_CACHE to a folder that does"
        )
    return content


def is_sealed(content: bytes, found: bytes, what: str) -> bool:
    """Whether the seal is that of the content, made with the key of this user."""
    return compare_digest(seal(content, what), found)


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
