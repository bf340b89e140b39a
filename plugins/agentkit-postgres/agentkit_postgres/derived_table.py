"""The table that keeps what was worked out about tools, such as a search index."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b

from agentkit.errors import StoreError
from agentkit_postgres.connection import Connections, Link, fetch

logger = logging.getLogger(__name__)

_GENERATIONS = 4
"""An entry goes when so many writes passed that did not name it."""

_MOST_BYTES = 512 * 1024 * 1024
"""What one program may write at a time; the index of a million tools is about 300 MB."""

_DAMAGED = "%s: the index entry %s is damaged and is made anew; tools are not affected"

_READ = "SELECT key, checksum, body FROM derived WHERE key = ANY (%s)"

_WRITE = """
INSERT INTO derived SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bytea[], %b::bytea[])
ON CONFLICT (key) DO UPDATE
SET generation = excluded.generation, checksum = excluded.checksum, body = excluded.body
"""

_NEXT = "SELECT coalesce(max(generation), 0) + 1 FROM derived"

_ONE_AT_A_TIME = "LOCK TABLE derived IN SHARE ROW EXCLUSIVE MODE"


class DerivedTable:
    """A ``DerivedCache`` in a database, for all programs that use it.

    Whatever goes wrong here, the server is away, the user only reads, an entry is damaged, is said
    in the log and costs the time to work things out again.

    Args:
        connections: To the database.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The bytes of those keys that are there and undamaged; of a damaged one a warning."""
        found: dict[str, bytes] = {}
        try:
            rows = self._connections.execute(_READ, (list(keys),))
        except StoreError as error:
            logger.info("no index was read, it is made anew: %s", error)
            return found
        for key, checksum, body in rows:
            if _checksum(body) == checksum:
                found[key] = body
            else:
                logger.warning(_DAMAGED, self._connections.address.shown, key)
        return found

    def put(self, entries: Mapping[str, bytes], *, keep: Collection[str] = ()) -> None:
        """Write entries in one transaction, and drop those that four writes did not name."""
        if sum(map(len, entries.values())) > _MOST_BYTES:
            logger.info("the index is larger than %d bytes and was not kept", _MOST_BYTES)
            return
        try:
            self._connections.run(lambda link: _write(link, entries, keep))
        except StoreError as error:
            logger.info("the index was not kept for the next start: %s", error)


def _write(link: Link, entries: Mapping[str, bytes], keep: Collection[str]) -> None:
    with link.transaction():
        fetch(link, _ONE_AT_A_TIME)
        ((generation,),) = fetch(link, _NEXT)
        bodies = list(entries.values())
        checksums = list(map(_checksum, bodies))
        fetch(link, _WRITE, (list(entries), [generation] * len(bodies), checksums, bodies))
        named = [key for key in keep if key not in entries]
        fetch(link, "UPDATE derived SET generation = %s WHERE key = ANY (%s)", (generation, named))
        fetch(link, "DELETE FROM derived WHERE generation <= %s", (generation - _GENERATIONS,))


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()
