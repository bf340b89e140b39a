"""The table of a SQLite file that keeps what was worked out about tools, such as a search index."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from agentkit.errors import StoreError
from agentkit.library.sealing import is_sealed, seal
from agentkit.library.sqlite.connection import SQLiteConnection

logger = logging.getLogger(__name__)

_GENERATIONS = 4
"""An entry goes when so many writes passed that did not name it."""

_AT_A_TIME = 500
"""Keys in one statement; SQLite takes a thousand at least."""

_MOST_BYTES = 512 * 1024 * 1024
"""What the table may hold; the index of a million tools is about 300 MB."""

_DAMAGED = (
    "%s: %d index entries are damaged or were written by another user or machine, and are made "
    "anew; tools are not affected"
)

_NEXT = "SELECT coalesce(max(generation), 0) + 1 FROM derived"


class DerivedTable:
    """A ``DerivedCache`` in a SQLite file.

    Each entry is sealed: a file from elsewhere may hold tools that were reviewed and an index that
    finds others, so an index is believed only where this user's programs made it.

    Whatever goes wrong here, the file is locked, read-only, full or damaged, is said in the log
    and costs the time to work things out again.

    Args:
        connection: The file.
    """

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The bytes of those keys that are there and undamaged; of others a warning."""
        found: dict[str, bytes] = {}
        strange = 0
        try:
            for some in _batches(keys):
                marks = ",".join("?" * len(some))
                sql = f"SELECT key, checksum, body FROM derived WHERE key IN ({marks})"  # noqa: S608 - question marks alone
                for key, checksum, body in self._connection.execute(sql, some):
                    if is_sealed(body, checksum, _kind(key)):
                        found[key] = body
                    else:
                        strange += 1
        except StoreError as error:
            logger.info("no index was read, it is made anew: %s", error)
        if strange:
            logger.warning(_DAMAGED, self._connection.path, strange)
        return found

    def put(self, entries: Mapping[str, bytes], *, keep: Collection[str] = ()) -> None:
        """Write entries in one transaction, and drop those that four writes did not name."""
        try:
            with self._connection.transaction():
                self._write(entries, keep)
        except StoreError as error:
            logger.info("the index was not kept for the next start: %s", error)

    def _write(self, entries: Mapping[str, bytes], keep: Collection[str]) -> None:
        ((generation,),) = self._connection.execute(_NEXT)
        self._connection.execute_many(
            "INSERT OR REPLACE INTO derived VALUES (?,?,?,?)",
            [(key, generation, seal(body, _kind(key)), body) for key, body in entries.items()],
        )
        self._connection.execute_many(
            "UPDATE derived SET generation = ? WHERE key = ?",
            [(generation, key) for key in keep if key not in entries],
        )
        oldest = generation - _GENERATIONS + 1
        self._connection.execute("DELETE FROM derived WHERE generation < ?", (oldest,))
        while self._size() > _MOST_BYTES and oldest <= generation:
            oldest += 1
            self._connection.execute("DELETE FROM derived WHERE generation < ?", (oldest,))

    def _size(self) -> int:
        ((total,),) = self._connection.execute("SELECT total(length(body)) FROM derived")
        return int(total)


def _kind(key: str) -> str:
    return f"derived {key}"


def _batches(keys: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while some := list(islice(rest, _AT_A_TIME)):
        yield some
