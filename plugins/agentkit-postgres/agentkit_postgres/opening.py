"""What is looked at before a database is used."""

from __future__ import annotations

import logging

from agentkit.errors import StoreError
from agentkit_postgres.connection import Connections
from agentkit_postgres.migrations import bring_up_to_date

logger = logging.getLogger(__name__)

_OLDEST = 120000
"""PostgreSQL 12; an older one is not maintained and was not tried."""

_FACTS = """
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
       current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'
"""


def make_ready(connections: Connections) -> None:
    """See that the server can hold a library, and give its schema the newest shape.

    A server that does not flush to its disk is used, with a warning in the log.

    Raises:
        StoreError: The server can not hold a library.
    """
    shown = connections.address.shown
    connections.connected().close()  # the pool would try several times, and log each failure
    ((version, encoding, is_durable),) = connections.execute(_FACTS)
    if version < _OLDEST:
        raise StoreError(f"{shown} runs PostgreSQL {version // 10000}; agentkit needs 12 or newer")
    if encoding != "UTF8":
        raise StoreError(
            f"the database of {shown} holds text as {encoding}, which lacks most characters; make "
            "one with: createdb --encoding=UTF8 --template=template0 NAME"
        )
    if not is_durable:
        logger.warning(
            "%s runs with fsync=off or full_page_writes=off: a crash of its machine may lose "
            "committed versions or the whole database; set both to on in postgresql.conf",
            shown,
        )
    bring_up_to_date(connections)
