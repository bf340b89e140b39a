"""Giving back the room that deleted rows took."""

from __future__ import annotations

from psycopg import sql

from agentkit.errors import StoreError
from agentkit.library.capabilities import Compacted
from agentkit_postgres.connection import Connections, Link, fetch

_TABLES = """
SELECT relname, pg_has_role(relowner, 'MEMBER') FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname
"""

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""

_UNUSED = "DELETE FROM derived WHERE generation < (SELECT max(generation) FROM derived)"
"""What the last one that worked something out did not name is of an older library."""


def compact_tables(connections: Connections) -> Compacted:
    """See ``PostgresStore.compact``."""
    with connections.own() as link:
        before = _size(link)
        tables: dict[str, bool] = dict(fetch(link, _TABLES))
        if not all(tables.values()):  # PostgreSQL would pass over them with a warning
            raise StoreError(
                f"the user of {connections.address.shown} does not own the tables of the schema "
                f"{connections.address.schema!r}, which compacting takes. Nothing was changed; "
                "open the store as the user who made it"
            )
        fetch(link, _UNUSED)
        for table in tables:
            link.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        return Compacted(bytes_before=before, bytes_after=_size(link))


def _size(link: Link) -> int:
    ((size,),) = fetch(link, _SIZE)
    return int(size)
