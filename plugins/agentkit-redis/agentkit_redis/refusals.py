"""What redis-py and a Redis server say when something fails, in our words with the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit_redis.address import RedisAddress

if TYPE_CHECKING:
    from redis import RedisError

_REFUSALS: dict[str, tuple[type[StoreError], str]] = {
    "OOM": (
        StoreError,
        (
            "has no memory left (maxmemory). Nothing was changed; give it more with CONFIG SET "
            "maxmemory, or let old episodes go (prune), and try again"
        ),
    ),
    "READONLY": (
        StoreError,
        (
            "is a replica and takes no writes. Nothing was changed; write the address of the "
            "primary into the URL (reading works here)"
        ),
    ),
    "MISCONF": (
        StoreError,
        (
            "can not save to its disk, which may be full, and takes no writes. Nothing was "
            "changed; see the log of the server, make room, and it takes writes again by itself"
        ),
    ),
    "NOPERM": (
        StoreError,
        (
            "does not let this user do that. Nothing was changed; give the user the keys ~{keys} "
            "and the channels &{keys} and the commands that the README of agentkit-redis lists"
        ),
    ),
    "WRONGTYPE": (
        StoreFormatError,
        (
            "holds data of another program under the keys {keys}. Nothing was changed; choose "
            "another prefix with ?prefix="
        ),
    ),
    "LOADING": (
        StoreUnavailableError,
        "is still reading its data from the disk; try again in a moment",
    ),
    "NOREPLICAS": (
        StoreUnavailableError,
        (
            "misses the replicas that it wants for a write (min-replicas-to-write). Nothing was "
            "changed; try again when they are back"
        ),
    ),
    "BUSY": (
        StoreUnavailableError,
        "is busy with a long script of somebody; try again in a moment",
    ),
    "MASTERDOWN": (
        StoreUnavailableError,
        "is a replica that lost its primary and may not answer meanwhile; try again later",
    ),
    "CLUSTERDOWN": (
        StoreUnavailableError,
        "belongs to a cluster that is down: not all slots are served; try again when it is whole",
    ),
    "TRYAGAIN": (
        StoreUnavailableError,
        "is moving the keys to another node of its cluster; try again in a moment",
    ),
    "MOVED": (
        StoreError,
        (
            "is one node of a cluster, and another one holds the keys {keys}. All keys of a "
            "library lie on one node: write its address, which the answer names, into the URL"
        ),
    ),
    "ASK": (
        StoreUnavailableError,
        (
            "is moving the keys {keys} to another node of its cluster; try again later, with "
            "the address of that node"
        ),
    ),
}

_LOGIN = (
    "refuses the user or the password. Write the right ones into the URL: "
    "redis://USER:PASSWORD@HOST, with %40 for @ and %2F for /"
)

_SILENT = ". A server without TLS is silent, too: write redis:// for one"

_CODES = {
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "NoPermissionError": "NOPERM",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "TryAgainError": "TRYAGAIN",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
}
"""Of these redis-py makes classes, and takes the code out of the words."""

_CODE = re.compile(rf"(?:^|[\s-])({'|'.join(_REFUSALS)})\b")
"""A server before version 7 puts the code of a script's error in the middle of the line."""

_NO_RIGHT = "can't run this command"


@contextmanager
def translated(address: RedisAddress) -> Iterator[None]:
    """Raise what redis-py raises as an error of a store."""
    from redis import RedisError

    try:
        yield
    except RedisError as error:
        raise _in_our_words(error, address) from error


def _in_our_words(error: RedisError, address: RedisAddress) -> StoreError:
    from redis import exceptions

    match error:
        case exceptions.AuthenticationError():  # a ConnectionError, too
            return StoreError(f"{address} {_LOGIN}. It says: {error}")
        case exceptions.BusyLoadingError():
            return _refusal("LOADING", error, address)
        case exceptions.TimeoutError():
            return StoreUnavailableError(
                f"{address} gave no answer in {address.timeout_seconds:g} s. Whether it did what "
                "was asked, nobody knows: ask for the same again, nothing is done twice"
                f"{_SILENT if address.uses_tls else ''}"
            )
        case exceptions.ConnectionError():
            return StoreUnavailableError(
                f"{address} can not be reached: {error}. Start the server, or mend the address or "
                f"the network{_tls_advice(error, address)}; then ask for the same again, nothing "
                "is done twice"
            )
        case _:
            code = _code_of(error)
            if code:
                return _refusal(code, error, address)
            return StoreError(f"{address} says {type(error).__name__}: {error}")


def _refusal(code: str, error: RedisError, address: RedisAddress) -> StoreError:
    kind, words = _REFUSALS[code]
    return kind(
        f"{address} {words.format(keys=f'{{{address.prefix}}}:*')}. It says: {code} {error}"
    )


def _code_of(error: RedisError) -> str:
    """The code that the server's answer began with; empty for one that we do not know."""
    code = _CODES.get(type(error).__name__, "")
    found = _CODE.search(str(error))
    if not code and found:
        code = found[1]
    return code or ("NOPERM" if _NO_RIGHT in str(error) else "")


def _tls_advice(error: RedisError, address: RedisAddress) -> str:
    words = str(error).upper()
    if "SSL" in words or "CERTIFICATE" in words:
        return (
            ", or the encryption (redis:// for a server without TLS, "
            "ssl_ca_certs=FILE for a certificate of your own)"
        )
    return "" if address.uses_tls else ", or write rediss:// if the server wants TLS"
