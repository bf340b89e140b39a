"""The format that a library in Redis is marked with: looked at before anything else."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors import StoreError, StoreFormatError
from agentkit_redis.connection import RedisConnection
from agentkit_redis.keys import FORMAT, FORMAT_NAME, FORMAT_NUMBER, Keys, text_of
from agentkit_redis.scripts import BEGIN


def begin(connection: RedisConnection, keys: Keys) -> None:
    """Find the library under the prefix, or begin one where there is nothing.

    Raises:
        StoreFormatError: The keys hold data of another program, or of a newer agentkit-redis.
            They are left as they were.
    """
    held = connection.ask("HGET", keys.head, "format")
    if held is None:
        found, held = connection.begin(BEGIN, keys.all, [FORMAT])
        if found == b"foreign":
            raise foreign(connection, text_of(held))
    check_format(connection, keys, held)


def check_format(connection: RedisConnection, keys: Keys, held: bytes | None) -> None:
    """Refuse a library that is not, or no longer, as this program knows it.

    Args:
        connection: To its server.
        keys: Of the library.
        held: What the head says its format is.

    Raises:
        StoreFormatError: It was made by a newer agentkit-redis or another program.
        StoreError: It was there and is gone.
    """
    mark = text_of(held or b"")
    name, _, number = mark.partition(" ")
    if mark == FORMAT:
        return
    if not mark:
        raise StoreError(
            f"{connection.address} no longer holds the library: {keys.head} is gone. Somebody "
            "deleted it, or the server was started again and keeps nothing on its disk. Restore "
            "a backup; to begin an empty library there, open the store again"
        )
    if name != FORMAT_NAME or not number.isdigit():
        raise foreign(connection, keys.head)
    raise StoreFormatError(
        f"{connection.address} was written by a newer agentkit-redis: its format is {number}, "
        f"this one reads {FORMAT_NUMBER}. Nothing was changed; run: pip install --upgrade "
        "agentkit-redis"
    )


def refused(connection: RedisConnection, keys: Keys, answer: Sequence[bytes]) -> StoreError:
    """The error for a script's answer that is the same for all of them.

    Raises:
        StoreError: The library is not, or no longer, as this program knows it.
    """
    if answer[0] == b"damaged":
        return StoreFormatError(
            f"{connection.address} holds {text_of(answer[1])} not as it was written: somebody "
            "changed it by hand. Nothing was changed; see what check() finds, and restore a backup"
        )
    check_format(connection, keys, answer[1])
    return StoreError(f"{connection.address} answers {answer!r}")


def foreign(connection: RedisConnection, key: str) -> StoreFormatError:
    """The error for keys that somebody else made."""
    return StoreFormatError(
        f"{connection.address} holds {key}, which agentkit did not make. Nothing was changed; "
        "choose another prefix with ?prefix="
    )
