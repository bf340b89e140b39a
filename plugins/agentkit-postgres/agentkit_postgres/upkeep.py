"""Looking for damage in the tables, and giving back the room that deleted rows took."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from agentkit.errors import StoreError
from agentkit.library.capabilities import Compacted, StoreFault
from agentkit_postgres.connection import Connections, Link, fetch
from agentkit_postgres.migrations import LEDGER
from agentkit_postgres.steps import STEPS

_TRIGGER = """
SELECT 1 FROM pg_trigger WHERE tgname = 'events_stay' AND tgrelid = 'events'::regclass
AND tgenabled <> 'D'
"""


def check_schema(connections: Connections) -> Iterator[StoreFault]:
    """Whether the schema is as its steps made it; see ``Checkable.check``."""
    rows = connections.execute(f"SELECT position, name FROM {LEDGER} ORDER BY position")  # noqa: S608 - a constant
    expected = list(enumerate(STEPS, start=1))
    if rows != expected:
        message = f"the schema went through {rows}, and not through {expected}; restore a backup"
        yield StoreFault(place=LEDGER, message=message)
    if not connections.execute(_TRIGGER):
        message = (
            "the trigger events_stay, which keeps events from being changed, was taken away or "
            "disabled; restore a backup"
        )
        yield StoreFault(place="events", message=message)


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
