"""``Address``: the URL of a library over HTTP, taken apart, without anything secret in it."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qsl, urlsplit

from agentkit.errors import UsageError
from agentkit.library.remote.wire import ROOT

KEY_VARIABLE = "AGENTKIT_LIBRARY_KEY"
"""Environment variable that holds the key that is shown to a library server."""

NO_CACHE = "none"
"""As ``?cache=none``: keep nothing on disk."""

_OPTIONS = ("cache", "timeout", "signed-from")
_NUMBER = re.compile(r"[0-9]{1,18}")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a library is, and how it is read.

    Attributes:
        base: The URL without options; safe to show.
        host: Host and port.
        is_encrypted: Whether it is https.
        cache: Folder for the cache; None for the user's own, ``NO_CACHE`` for none.
        timeout_seconds: Longest answer, such as a page of definitions.
        signed_from: The first event that has to be signed.
    """

    base: str
    host: str
    is_encrypted: bool
    cache: str | None = None
    timeout_seconds: float = 60.0
    signed_from: int = 1

    def __str__(self) -> str:
        return self.base

    def cache_folder(self, caches: Path) -> Path | None:
        """The folder of the cache; None for none.

        Args:
            caches: Where agentkit keeps caches of this user.
        """
        if self.cache == NO_CACHE:
            return None
        if self.cache is not None:
            return Path(self.cache).expanduser()
        name = _NOT_IN_A_NAME.sub("_", self.host)
        return (
            caches / "libraries" / f"{name}-{hashlib.sha256(self.base.encode()).hexdigest()[:12]}"
        )


def read_address(url: str) -> Address:
    """Take the URL of a library apart.

    Example:
        >>> address = read_address("https://tools.example/team-a?cache=none")
        >>> print(address, address.cache)
        https://tools.example/team-a none

    Raises:
        UsageError: The URL is none of a library, or holds a key or a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        _refuse("it can not be taken apart; write http://HOST:PORT or https://HOST")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        _refuse(f"there is a name or password before its host; put a key into {KEY_VARIABLE}")
    if parts.scheme.lower() not in {"http", "https"} or not host or parts.fragment:
        _refuse("write http://HOST:PORT or https://HOST, perhaps with a path")
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    path = parts.path.rstrip("/").removesuffix(ROOT)
    address = Address(
        base=f"{parts.scheme.lower()}://{where}{path}",
        host=where,
        is_encrypted=parts.scheme.lower() == "https",
    )
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        address = _with_option(address, name, value)
    return address


def _with_option(address: Address, name: str, value: str) -> Address:
    if name not in _OPTIONS:
        _refuse(
            f"it has an option that is none of {', '.join(_OPTIONS)}; a key goes into "
            f"{KEY_VARIABLE}, never into a URL, which ends up in logs and lists of processes"
        )
    match name:
        case "cache" if value:
            return replace(address, cache=value)
        case "timeout" if _is_seconds(value):
            return replace(address, timeout_seconds=float(value))
        case "signed-from" if _NUMBER.fullmatch(value):
            return replace(address, signed_from=int(value))
    return _refuse(f"the value of its option {name!r} is not usable")


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _refuse(why: str) -> NoReturn:
    """Never repeats the URL: what is wrong with it may be that it holds a secret."""
    raise UsageError(f"the URL of the library is not usable: {why}")
