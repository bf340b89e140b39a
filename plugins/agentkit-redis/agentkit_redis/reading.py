"""Reading many things of a library with few round trips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from agentkit.library.library import Library
from agentkit.library.sealing import VerifiedDefinitions
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.connection import Command, RedisConnection
from agentkit_redis.keys import Keys
from agentkit_redis.marker import check_format
from agentkit_redis.records import (
    HEAD_FIELDS,
    Head,
    Stored,
    VersionRecord,
    is_same,
    read_version,
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
        self.verified = VerifiedDefinitions(str(connection.address))

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
        found = [held.get(one) or self._definition(one, bodies[one.digest]) for one in wanted]
        self.verified.keep()
        return found

    def _definition(self, stored: Stored, body: bytes | None) -> ToolDefinition:
        text = (body or b"").decode("utf-8", "surrogateescape")  # whatever bytes lie there
        return self.verified.read(stored.digest, stored.origin, text)

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
