"""``Keys``: who may use the server."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.errors import UsageError
from agentkit.reading import open_plain, read_stored

_LOG = logging.getLogger(__name__)
_SHORTEST = 16
_LOOK_EVERY_SECONDS = 1.0
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Digests = Mapping[str, bytes]
"""Name of a key to the SHA-256 of the key; the key itself is not kept."""

Stamp = tuple[int, int, int]


class Keys:
    """Bearer keys, each with a name for records and limits.

    Several keys at a time make rotation a matter of adding the new one, moving clients over, and
    taking the old one away. Only digests are kept, and nothing here shows or logs a key.

    Args:
        keys: Name to key, or pairs of these. A key has at least 16 characters.
        place: Where they come from, for messages.

    Raises:
        UsageError: There is no key, or one is not usable.

    Example:
        >>> keys = Keys({"shop": "sk-0123456789abcdef"})
        >>> keys.holder("sk-0123456789abcdef"), keys.holder("sk-guessed"), keys
        ('shop', None, Keys(shop))
    """

    def __init__(
        self, keys: Mapping[str, str] | Iterable[tuple[str, str]], *, place: str = "keys"
    ) -> None:
        pairs = keys.items() if isinstance(keys, Mapping) else keys
        self._digests: Digests = _digests(pairs, place)

    def __repr__(self) -> str:
        return f"Keys({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys."""
        return tuple(self._digests)

    def holder(self, presented: str) -> str | None:
        """The name of the key that was presented; None when it is none of these.

        Every key is compared, in a time that does not depend on what was presented.
        """
        digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
        found: str | None = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found

    def proof(self, name: str) -> str:
        """What changes with the key of that name, for sessions that began with it; else empty."""
        digest = self._digests.get(name)
        return "" if digest is None else hashlib.sha256(digest).hexdigest()[:32]

    @classmethod
    def named(cls, place: str, root: Path = Path()) -> Keys:
        """Keys in a file, or else in an environment variable, of that name.

        Args:
            place: The name.
            root: A folder where the file may be, too.

        Raises:
            UsageError: There is neither, or no usable key in it.
        """
        path = Path(place).expanduser()
        file = next((one for one in (path, root / path) if one.is_file()), None)
        if file is None and "=" in place:
            raise UsageError(
                "keys come from the name of an environment variable or of a file, not as they are"
            )
        if file is None and place.isidentifier():
            return cls.from_environment(place)
        return cls.from_file(file or path)

    @classmethod
    def from_environment(cls, variable: str) -> Keys:
        """Keys out of an environment variable: ``name=key`` pairs between commas or blanks.

        A single key may stand alone, it is then named ``default``.

        Raises:
            UsageError: The variable is not set, or holds no usable key.
        """
        text = os.environ.get(variable)
        if text is None:
            raise UsageError(
                f"the environment variable {variable} is not set; it should hold keys as "
                "name=key, several between commas"
            )
        return cls(_pairs(text), place=f"the environment variable {variable}")

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.monotonic
    ) -> Keys:
        """Keys out of a file, one ``name=key`` a line; ``#`` begins a comment.

        The file is read again within a second of a change. When it cannot be
        used then, the keys that were known stay, and the log says why.

        Raises:
            UsageError: The file cannot be read, or holds no usable key.
        """
        return _FileKeys(Path(path), clock)


class _FileKeys(Keys):
    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._digests, self._stamp = self._read()
        self._looked_at = clock()

    def holder(self, presented: str) -> str | None:
        self._look()
        return super().holder(presented)

    def proof(self, name: str) -> str:
        self._look()
        return super().proof(name)

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked_at >= _LOOK_EVERY_SECONDS:
            self._looked_at = now
            try:
                if _stamp(self._path) != self._stamp:
                    self._digests, self._stamp = self._read()
            except (OSError, UsageError) as error:
                _LOG.warning("the keys stay as they were: %s", episodes.error_line(error))

    def _read(self) -> tuple[Digests, Stamp]:
        place = f"the key file {self._path}"
        try:
            stamp = _stamp(self._path)
            with open_plain(self._path) as file:
                text = read_stored(file).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{place} cannot be read: {type(error).__name__}") from error
        lines = (line.partition("#")[0] for line in text.splitlines())
        return _digests(_pairs("\n".join(lines)), place), stamp


def _stamp(path: Path) -> Stamp:
    """Changes when the file is written again, or another one takes its place."""
    known = path.stat()
    return known.st_mtime_ns, known.st_size, known.st_ino


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for entry in re.split(r"[,\s]+", text.strip()):
        name, equals, key = entry.partition("=")
        if entry:
            # A key may end in "=" itself, as base64 does: then there is no name before it.
            yield (name, key) if equals and key.strip("=") else ("default", entry)


def _digests(pairs: Iterable[tuple[str, str]], place: str) -> Digests:
    digests: dict[str, bytes] = {}
    for at, (name, key) in enumerate(pairs, start=1):
        if not _NAME.fullmatch(name):
            wrong = f"the name of key {at} is not usable; use up to 64 of A-Z a-z 0-9 _ -"
        elif name in digests:
            wrong = f"two keys are named {name!r}; give each its own name"
        elif len(key) < _SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
            wrong = (
                f"the key {name!r} is not usable; it needs at least {_SHORTEST} printable ASCII "
                "characters. python -c \"import secrets; print('sk-' + secrets.token_urlsafe(32))\""
                " makes one"
            )
        else:
            digests[name] = hashlib.sha256(key.encode()).digest()
            continue
        raise UsageError(f"{place}: {wrong}")
    if not digests:
        raise UsageError(f"{place} holds no key; write name=key, one a line")
    return digests
