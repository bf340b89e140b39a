"""The keys of a library in Redis, how its records are written, and reading them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Self, TypeVar

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.changes import changed_definition, now, stored_definition
from agentkit.library.library import Library
from agentkit.library.store import LibraryChange
from agentkit.reading import read_json
from agentkit.tools.definition import Origin, ToolDefinition
from agentkit_redis.connection import Command, RedisConnection
from agentkit_redis.scripts import BEGIN

FORMAT = "agentkit-redis 1"
"""Marks a library as ours; the number rises when an older agentkit-redis could not read it."""

FORMAT_NAME, _, FORMAT_NUMBER = FORMAT.partition(" ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """Names of keys. All share their hash tag, so that a cluster keeps them in one slot.

    Attributes:
        head: Hash: format, newest version and its stamp, last event and its hash.
        volume: Hash: number of the last episode, and how many there are, with their bytes.
        versions: Hash by version: its stamp, a space, and what was asked for as JSON. A stamp is
            the SHA-1 over the one before and that JSON, so that two libraries which part ways
            can be told apart.
        proposals: Hash by proposal id: the version that it made.
        definitions: Hash by digest: the definition as JSON.
        tools: Hash by name: the tool of the newest version, as the version and the place where
            it was added, its digest and its origin as JSON, with spaces between.
        revisions: Sorted set of scores 0: name, NUL and version in 16 digits.
        events: Stream by sequence: hash and JSON of each event. It is never trimmed.
        episodes: Stream by number: id, JSON and terms of each episode.
        ids: Hash by episode id: its number.
        index: Sorted set of scores 0: a term, NUL and the number in 16 digits. A term is a letter
            for session, tool or stop reason, and its name.
        ages: Sorted set of the numbers in 16 digits: when each episode began, in seconds.
        channel: Where a commit is told; no key.
    """

    head: str
    volume: str
    versions: str
    proposals: str
    definitions: str
    tools: str
    revisions: str
    events: str
    episodes: str
    ids: str
    index: str
    ages: str
    channel: str

    @classmethod
    def under(cls, prefix: str) -> Self:
        """The keys of the library under a prefix.

        Example:
            >>> Keys.under("team-a").head
            '{team-a}:head'
        """
        return cls(**{one.name: f"{{{prefix}}}:{one.name}" for one in fields(cls)})

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, the head first and the volume second."""
        names = [one.name for one in fields(self) if one.name != "channel"]
        return tuple(getattr(self, name) for name in names)

    @property
    def of_episodes(self) -> tuple[str, ...]:
        """What the scripts about episodes work on, in their order."""
        return (self.head, self.episodes, self.ids, self.index, self.ages, self.volume)


def raw(text: str) -> bytes:
    """Text as Redis holds it, halves of surrogate pairs included: it takes any bytes."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The inverse of ``raw``."""
    return data.decode("utf-8", "surrogatepass")


HEAD_FIELDS = ("format", "version", "stamp", "event", "hash")


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """Where a library stands.

    Attributes:
        version: The newest one.
        stamp: Of that version.
        event: Sequence of the last event.
        hash: Of the last event.
    """

    version: int
    stamp: bytes
    event: int
    hash: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A definition as the keys hold it.

    Attributes:
        name: Of the tool.
        digest: Of the definition.
        origin: Where this revision came from, as JSON.
    """

    name: str
    digest: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRecord:
    """What made a version.

    Attributes:
        version: Its number.
        stamp: Tells it from the version of that number in a library that went another way.
        data: What its key holds.
        upserts: The tools that it added or replaced, in order.
        removals: The names that it removed.
        proposal_id: The change.
        author: Who made it.
        reason: Why.
        evidence: Ids of the episodes behind it.
        created_at: When.
    """

    version: int
    stamp: bytes
    data: bytes
    upserts: tuple[Stored, ...]
    removals: tuple[str, ...]
    proposal_id: str
    author: str
    reason: str
    evidence: tuple[str, ...]
    created_at: str


def version_text(change: LibraryChange, upserts: Sequence[Stored]) -> str:
    """What a version's key holds behind the stamp. Plain ASCII, whatever a model wrote."""
    record = {
        "proposal_id": change.proposal_id,
        "author": change.author,
        "reason": change.reason,
        "evidence": list(change.evidence),
        "created_at": change.created_at or now(),
        "upserts": [[one.name, one.digest, one.origin] for one in upserts],
        "removals": list(change.removals),
    }
    return json.dumps(record, separators=(",", ":"))


def read_version(version: int, data: bytes | None) -> VersionRecord:
    """The inverse of ``version_text``, with the stamp before it.

    Raises:
        StoreFormatError: It is absent or cannot be read.
    """
    try:
        stamp, _, text = (data or b"").partition(b" ")
        found: dict[str, Any] = read_json(text)
        steps = [Stored(name=n, digest=d, origin=o) for n, d, o in found.pop("upserts")]
        removals, evidence = tuple(found.pop("removals")), tuple(found.pop("evidence"))
        return VersionRecord(
            version=version,
            stamp=stamp,
            data=data or b"",
            upserts=tuple(steps),
            removals=removals,
            evidence=evidence,
            **found,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreFormatError(
            f"what made version {version} is absent or cannot be read ({error}); somebody changed "
            "the keys by hand: restore a backup"
        ) from error


def follows(stamp: bytes, data: bytes | None) -> bool:
    """Whether what made a version was written behind the version of that stamp."""
    own, _, text = (data or b"").partition(b" ")
    return own == hashlib.sha1(stamp + text, usedforsecurity=False).hexdigest().encode()


def definition_text(tool: ToolDefinition) -> tuple[Stored, str]:
    """A definition as the keys hold it, and its text without the origin."""
    record = tool.to_json()
    origin = json.dumps(record.pop("origin", {}), separators=(",", ":"))
    body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return Stored(name=tool.name, digest=tool.digest, origin=origin), body


def is_same(stored: Stored, known: ToolDefinition) -> bool:
    """Whether a definition that is known is the stored one, down to where it came from."""
    if known.digest != stored.digest:
        return False
    try:
        return known.origin == Origin(**read_json(stored.origin))
    except (ValueError, TypeError):
        return False  # reading it tells what is wrong


def read_tool(name: bytes, data: bytes) -> tuple[int, int, Stored]:
    """Version and place where a tool of the newest version was added, and the tool.

    Raises:
        StoreFormatError: It cannot be read.
    """
    try:
        since, place, digest, origin = text_of(data).split(" ", 3)
        return int(since), int(place), Stored(name=text_of(name), digest=digest, origin=origin)
    except ValueError as error:
        raise StoreFormatError(
            f"the tool {text_of(name)!r} cannot be read ({error}); restore a backup"
        ) from error


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
