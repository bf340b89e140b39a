"""Tool libraries and episodes in Redis, for agentkit: quick commits, shared by a fleet.

``open_store("redis://localhost:6379/0")`` gives a ``RedisStore``.
"""

from __future__ import annotations

from agentkit_redis._version import __version__
from agentkit_redis.address import RedisAddress, parse_address
from agentkit_redis.durability import Durability
from agentkit_redis.store import RedisStore

__all__ = [
    "Durability",
    "RedisAddress",
    "RedisStore",
    "__version__",
    "open_redis",
    "parse_address",
]


def open_redis(url: str) -> RedisStore:
    """Open the store of a URL; ``open_store`` calls it for ``redis:`` and ``rediss:``.

    Raises:
        UsageError: This is not the URL of a Redis store.
        StoreError: The store cannot be opened; see ``RedisStore``.
    """
    return RedisStore(parse_address(url))
