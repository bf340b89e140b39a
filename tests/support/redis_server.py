"""A real Redis server for tests, and empty libraries in it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from agentkit_redis.address import RedisAddress, parse_address
from agentkit_redis.connection import RedisConnection, new_client
from agentkit_redis.reading import Keys
from support.local_server import LocalServer, ServerError, find_program

URL_VARIABLE = "AGENTKIT_TEST_REDIS_URL"
"""Names a server that is there; libraries are made in it under prefixes of their own."""

_PROGRAMS = ("redis-server", "valkey-server")
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/*/bin")


class RedisServer(LocalServer):
    """A Redis server of this machine on a port of its own, with its data in a temporary folder.

    ``with RedisServer() as server: store = open_store(server.url)``.

    Args:
        settings: Lines of its configuration, which replace ours. Ours keep an append-only file
            that is flushed every second and no snapshots.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._program = server_program()
        self.settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            **(settings or {}),
        }

    @property
    def url(self) -> str:
        """Of the server, without a prefix."""
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> Sequence[str]:
        """The program with its settings."""
        lines = (word for name, value in self.settings.items() for word in (f"--{name}", value))
        return [self._program, *lines]

    def answers(self) -> bool:
        """Whether the server takes requests now."""
        from redis import exceptions

        client = new_client(RedisAddress(host="127.0.0.1", port=self.port, timeout_seconds=1.0))
        try:
            return bool(client.ping())
        except exceptions.AuthenticationError:
            return True  # it wants a password, so it is there
        except (exceptions.ConnectionError, exceptions.TimeoutError):
            return False  # it does not listen yet, or is reading its data
        finally:
            client.close()
            client.connection_pool.disconnect()

    def restart(self) -> None:
        """End it in good order and start it again, with its data and on its port."""
        self.stop()
        self.start()


def server_program() -> str:
    """The path of the server program.

    Raises:
        ServerError: It is not installed; the message is the reason to skip a test.
    """
    for name in _PROGRAMS:
        found = find_program(name, folders=_FOLDERS)
        if found is not None:
            return found
    raise ServerError(
        f"no redis-server is installed (apt-get install redis-server) and {URL_VARIABLE} names none"
    )


@contextmanager
def redis_server_url() -> Iterator[str]:
    """The URL of a server: the one that the environment names, or one that is started for it.

    Raises:
        ServerError: There is neither; the message is the reason to skip a test.
    """
    given = os.environ.get(URL_VARIABLE, "")
    if given:
        yield given
        return
    with RedisServer() as server:
        yield server.url


@contextmanager
def empty_library(server_url: str) -> Iterator[str]:
    """The URL of an empty library in a server; what was put there is deleted afterwards."""
    prefix = f"test-{uuid.uuid4().hex}"
    mark = "&" if "?" in server_url else "?"
    url = f"{server_url}{mark}prefix={prefix}"
    try:
        yield url
    finally:
        delete_library(url)


def delete_library(url: str) -> None:
    """Delete everything of one library. A server that is gone has nothing to delete."""
    from agentkit.errors import StoreError

    connection = RedisConnection(replace(parse_address(url), timeout_seconds=5.0))
    try:
        connection.ask("DEL", *Keys.under(connection.address.prefix).all)
    except StoreError:
        if os.environ.get(URL_VARIABLE, ""):
            raise
    finally:
        connection.close()
