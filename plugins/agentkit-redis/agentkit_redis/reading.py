"""Reading the records of a library, of the format that this package knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.changes import changed_definition, stored_definition
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.connection import Command, RedisConnection
from agentkit_redis.records import (
    FORMAT,
    FORMAT_NAME,
    FORMAT_NUMBER,
    HEAD_FIELDS,
    Head,
    Keys,
    Stored,
    VersionRecord,
    is_same,
    read_version,
    text_of,
)
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


T = TypeVar("T")

AT_A_TIME = 500
"""Fields in one command: others are served between them."""

_IN_ONE_TRIP = 8
"""Such commands in one round trip."""


class LibraryReader:
    """Looks things up, and decodes them.

    Args:
        connection: To the server.
        keys: Of the library.
    """

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self.connection = connection
        self.keys = keys

    def head(self) -> Head:
        """Where the library stands now."""
        return self.read_head(self.connection.ask(*self.head_command()))

    def head_command(self) -> Command:
        """The command that asks where it stands."""
        return ("HMGET", self.keys.head, *HEAD_FIELDS)

    def read_head(self, answer: Sequence[bytes | None]) -> Head:
        """The answer to ``head_command``.

        Raises:
            StoreFormatError: The library is of a newer format, or not ours.
            StoreError: It is gone.
        """
        held, version, stamp, event, end = answer
        check_format(self.connection, self.keys, held)
        return Head(
            version=int(version or 0), stamp=stamp or b"", event=int(event or 0), hash=end or b""
        )

    def at_once(self, *commands: Command) -> tuple[Head, list[Any]]:
        """Where the library stands, and the answers to commands at that very moment.

        A transaction would do, but a server whose memory is full takes none, not even to read.
        """
        look = self.head_command()
        while True:
            before, *answers, after = self.connection.ask_all([look, *commands, look])
            if before == after:
                return self.read_head(before), answers

    def versions(self, numbers: Iterable[int]) -> Iterator[VersionRecord]:
        """What made some versions, lazily, in the order asked for."""
        for some in batches(numbers, AT_A_TIME):
            answer = self.connection.ask("HMGET", self.keys.versions, *some)
            yield from (read_version(*one) for one in zip(some, answer, strict=True))

    def definitions(self, wanted: Sequence[Stored], known: Library) -> list[ToolDefinition]:
        """Definitions in the order asked for; those that are known already are the same objects.

        Args:
            wanted: What to read.
            known: A snapshot of the library, of any version.
        """
        held: dict[Stored, ToolDefinition] = {}
        for one in wanted:
            tool = known.get(one.name)
            if tool is not None and is_same(one, tool.definition):
                held[one] = tool.definition
        digests = list(dict.fromkeys(one.digest for one in wanted if one not in held))
        bodies = dict(zip(digests, self._bodies(digests), strict=True))
        return [held.get(one) or self._definition(one, bodies[one.digest]) for one in wanted]

    def _definition(self, stored: Stored, body: bytes | None) -> ToolDefinition:
        text = (body or b"").decode("utf-8", "surrogateescape")  # whatever bytes lie there
        place = self.connection.address
        found = stored_definition(stored.digest, stored.origin, text, place=place)
        if found.name != stored.name:
            raise changed_definition(found, f"it is kept for {stored.name!r}", place)
        return found

    def _bodies(self, digests: Sequence[str]) -> list[bytes | None]:
        commands = [("HMGET", self.keys.definitions, *some) for some in batches(digests, AT_A_TIME)]
        found: list[bytes | None] = []
        for some in batches(commands, _IN_ONE_TRIP):
            answers: list[Any] = self.connection.ask_all(some)
            found += [body for answer in answers for body in answer]
        return found


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most ``size``."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
