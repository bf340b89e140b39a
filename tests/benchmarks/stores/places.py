"""Empty stores to measure: of a kind, for which a server is started, or on a server that runs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

MakeEmpty = Callable[[], AbstractContextManager[str]]


def empties(place: str, stack: ExitStack) -> MakeEmpty:
    """How to get empty stores of a kind, or on a server that runs."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    kind = {"postgresql": "postgres", "rediss": "redis"}.get(s := place.partition(":")[0], s)
    match kind:
        case "sqlite":
            return lambda: _in_folder(folder, "sqlite:///{}/store.db")
        case "dir":
            return lambda: _in_folder(folder, "dir:{}")
        case "postgres":
            from agentkit_postgres import testing as postgres

            server = place if ":" in place else stack.enter_context(postgres.PostgresServer()).url
            return lambda: postgres.empty_store_url(server)
        case "redis":
            from agentkit_redis import testing as redis

            server = place if ":" in place else stack.enter_context(redis.RedisServer()).url
            return lambda: redis.empty_library(server)
        case _:
            sys.exit(f"{place!r} is no store to measure: sqlite, dir, postgres, redis or a URL")


@contextmanager
def _in_folder(folder: Path, url: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        yield url.format(inner)
