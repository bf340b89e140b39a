"""The URL of a Redis store, read once: where the server is, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from agentkit.errors import UsageError

Requirement: TypeAlias = Literal["none", "everysec", "always"]

_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")

_OPTIONS = ("prefix", "require", "replicas", "timeout", *_TLS)

_FORM = "redis://USER:PASSWORD@HOST:PORT/DATABASE?prefix=NAME"


@dataclass(frozen=True, kw_only=True)
class RedisAddress:
    """Where a library lies.

    Attributes:
        host: Of the server.
        port: Of the server.
        database: Its number; a cluster has 0 alone.
        prefix: Of all keys of the library; they share it as their hash tag, so that a cluster
            keeps them in one slot.
        uses_tls: Whether the connection is encrypted.
        tls: Options of TLS, as redis-py names them.
        user: Name of the user; empty for the default one.
        password: Never shown.
        require: What a server must do with an acknowledged commit for the store to be opened.
        replicas: How many replicas must have a commit before it is acknowledged.
        timeout_seconds: How long to wait for a connection, and for each answer.
    """

    host: str = "localhost"
    port: int = 6379
    database: int = 0
    prefix: str = "agentkit"
    uses_tls: bool = False
    tls: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    password: str = field(default="", repr=False)
    require: Requirement = "none"
    replicas: int = 0
    timeout_seconds: float = 5.0

    def __str__(self) -> str:
        """The URL as it may be shown, without the password."""
        scheme = "rediss" if self.uses_tls else "redis"
        secret = ":***" if self.password else ""
        login = f"{self.user}{secret}@" if self.user or secret else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{login}{host}:{self.port}/{self.database}?prefix={self.prefix}"


def parse_address(url: str) -> RedisAddress:
    """Read a URL.

    Raises:
        UsageError: It is not the URL of a Redis store. The message never shows the password.

    Example:
        >>> print(parse_address("redis://:secret@cache.example/2?prefix=team-a"))
        redis://:***@cache.example:6379/2?prefix=team-a
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:  # its words may hold a part of the password
        raise _not_an_address("its parts cannot be told apart") from None
    if parts.scheme not in {"redis", "rediss"} or "://" not in url:
        raise _not_an_address("it starts neither with redis:// nor with rediss://")
    if parts.fragment:
        raise _not_an_address("it holds a '#', which is written %23 in a password")
    _check_options(options)
    return RedisAddress(
        host=unquote(host or "localhost"),
        port=6379 if port is None else port,
        database=_whole(parts.path.strip("/") or "0", "database"),
        prefix=_prefix(options.get("prefix", "agentkit")),
        uses_tls=parts.scheme == "rediss",
        tls=_tls(parts, options),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        require=_requirement(options.get("require", "none")),
        replicas=_whole(options.get("replicas", "0"), "replicas"),
        timeout_seconds=_seconds(options.get("timeout", "5")),
    )


def _check_options(options: Mapping[str, str]) -> None:
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise UsageError(
            f"the URL of a Redis store has no option {', '.join(map(repr, unknown))}; there are "
            f"{', '.join(_OPTIONS)}. A password stands before the host: {_FORM}"
        )


def _prefix(text: str) -> str:
    prefix = text.removesuffix(":")
    if not prefix or not prefix.isprintable() or set(prefix) & set("{}"):
        raise UsageError(
            f"prefix={text!r} cannot begin the names of keys; write printable characters other "
            "than { and }, such as prefix=team-a"
        )
    return prefix


def _tls(parts: SplitResult, options: Mapping[str, str]) -> dict[str, str]:
    given = {name: options[name] for name in _TLS if name in options}
    if given and parts.scheme != "rediss":
        raise UsageError(f"{', '.join(given)}: only rediss:// encrypts; write rediss://")
    return given


def _requirement(text: str) -> Requirement:
    known: tuple[Requirement, ...] = get_args(Requirement)
    for one in known:
        if text == one:
            return one
    raise UsageError(f"require={text!r} is none of {', '.join(known)}")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{what} is a whole number from 0 on in the URL of a Redis store: {_FORM}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"timeout={text!r} is no number of seconds above 0")
    return seconds


def _not_an_address(why: str) -> UsageError:
    return UsageError(
        f"this is not the URL of a Redis store: {why}. Write {_FORM}; in a user or password "
        "write / as %2F, @ as %40, # as %23, ? as %3F and % as %25"
    )
