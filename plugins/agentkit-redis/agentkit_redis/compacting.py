"""Giving back room: the server writes its append-only file anew and returns free memory."""

from __future__ import annotations

import logging
import time
from typing import Any

from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.capabilities import Compacted
from agentkit_redis.connection import RedisConnection

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.05


def compact(connection: RedisConnection) -> Compacted:
    """See ``Compactable.compact``; this is about the whole server.

    Raises:
        StoreError: The user may not ask for it, or the server could not write its file.
        StoreUnavailableError: It takes longer than ten minutes.
    """
    before = _sizes(connection)
    if before["aof_enabled"]:
        _rewrite(connection)
    try:
        connection.ask("MEMORY PURGE")
    except StoreError as error:
        logger.info("%s returns no free memory: %s", connection.address, error)
    name = "aof_current_size" if before["aof_enabled"] else "used_memory_rss"
    return Compacted(bytes_before=before[name], bytes_after=_sizes(connection)[name])


def _rewrite(connection: RedisConnection) -> None:
    if not _is_rewriting(connection):
        connection.ask("BGREWRITEAOF")
    end = time.monotonic() + _PATIENCE_SECONDS
    while _is_rewriting(connection):
        if time.monotonic() > end:
            raise StoreUnavailableError(
                f"{connection.address} has been writing its append-only file for "
                f"{_PATIENCE_SECONDS:.0f} s; it goes on by itself, nothing is lost"
            )
        time.sleep(_LOOK_SECONDS)
    if connection.ask("INFO", "persistence").get("aof_last_bgrewrite_status") != "ok":
        raise StoreError(
            f"{connection.address} could not write its append-only file anew; the old one stays "
            "in use and nothing is lost. See the log of the server; its disk may be full"
        )


def _is_rewriting(connection: RedisConnection) -> bool:
    told = connection.ask("INFO", "persistence")
    return bool(told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"])


def _sizes(connection: RedisConnection) -> dict[str, Any]:
    told = connection.ask("INFO", "persistence")
    return {
        "aof_enabled": told["aof_enabled"],
        "aof_current_size": told.get("aof_current_size", 0),
        "used_memory_rss": connection.ask("INFO", "memory")["used_memory_rss"],
    }
