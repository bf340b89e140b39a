"""The connections of one store to its server: one retry, errors in our words, one end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agentkit.errors import StoreError
from agentkit_redis.address import RedisAddress
from agentkit_redis.refusals import translated
from agentkit_redis.scripts import REHEARSE, Script

if TYPE_CHECKING:
    from redis import RedisError

logger = logging.getLogger(__name__)

Word: TypeAlias = str | bytes | int | float
Command: TypeAlias = Sequence[Word]
Client: TypeAlias = Any  # a redis.Redis, most of whose methods have no types
Result = TypeVar("Result")

_UNLIMITED = 2**31 - 1
_IDLE_SECONDS = 30
"""A connection that nobody used for so long is tried before it is used."""


class RedisConnection:
    """Speaks to a server, for as many threads as there are: each gets a connection of its own.

    A connection that broke is replaced once, and what was asked is asked again: everything that a
    store asks may be asked twice. An answer that takes too long is not waited for a second time.

    A fork of this process gets connections of its own.

    Args:
        address: Of the server.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._client: Client | None = new_client(address)
        self._may_write = False

    def ask(self, *command: Word) -> Any:
        """Send one command and return its answer."""
        return self._attempt(lambda client: client.execute_command(*command))

    def ask_all(self, commands: Sequence[Command]) -> list[Any]:
        """Send several commands in one round trip; others may be served between them."""

        def work(client: Client) -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return list(pipe.execute())

        return self._attempt(work)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        """Run a script that writes; it happens as a whole.

        Raises:
            StoreError: The server refuses it; nothing was changed then.
        """
        self._rehearse(keys)
        return self._attempt(lambda client: _run(client, script, keys, arguments))

    def run_and_wait(
        self, script: Script, keys: Sequence[str], arguments: Sequence[Word], replicas: int
    ) -> tuple[Any, int | RedisError]:
        """Run a script that writes, and wait until so many replicas have what it wrote.

        Both go over one connection: behind another one there may be another server, which became
        the primary in the meantime and lacks what was written.

        Returns:
            The script's answer, and how many replicas have it or why nobody knows.

        Raises:
            StoreError: The server refuses it; nothing was changed then.
        """
        self._rehearse(keys)
        wait = ("WAIT", replicas, int(self.address.timeout_seconds * 500))
        return self._attempt(lambda client: _run_before(client, wait, script, keys, arguments))

    def begin(self, script: Script, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        """Run a script that may have nothing to write."""
        return self._attempt(lambda client: _run(client, script, keys, arguments))

    def check_open(self) -> None:
        """Refuse further use of a closed store.

        Raises:
            StoreError: It is closed.
        """
        if self._client is None:
            raise StoreError(f"{self.address} is closed; open it again with open_store")

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
            client.connection_pool.disconnect()

    def _rehearse(self, keys: Sequence[str]) -> None:
        """Find out once whether the user may do all that scripts do."""
        if not self._may_write:
            self._attempt(lambda client: _run(client, REHEARSE, [_scratch(keys[0])], ()))
            self._may_write = True

    def _attempt(self, work: Callable[[Client], Result]) -> Result:
        from redis import exceptions

        self.check_open()
        client = self._client
        assert client is not None
        with translated(self.address):
            try:
                return work(client)
            except (exceptions.AuthenticationError, exceptions.BusyLoadingError):
                raise  # they are connection errors to redis-py
            except exceptions.ConnectionError as error:
                logger.info("%s: a connection broke, trying once more: %s", self.address, error)
                self.check_open()  # closing the store breaks connections, too
                client.connection_pool.disconnect(inuse_connections=False)
            return work(client)


def new_client(address: RedisAddress, *, idle_seconds: int = _IDLE_SECONDS) -> Client:
    """A client with a pool of its own, which retries nothing by itself.

    Args:
        address: Of the server.
        idle_seconds: A connection that was idle for so long is tried before it is used; 0: never.
    """
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    with translated(address):
        return Redis(
            host=address.host,
            port=address.port,
            db=address.database,
            username=address.user or None,
            password=address.password or None,
            socket_timeout=address.timeout_seconds,
            socket_connect_timeout=address.timeout_seconds,
            socket_keepalive=True,
            health_check_interval=idle_seconds,
            max_connections=_UNLIMITED,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            **_tls_options(address),
        )


def _tls_options(address: RedisAddress) -> dict[str, Any]:
    if not address.uses_tls:
        return {}
    options: dict[str, Any] = {"ssl": True, **address.tls}
    checks = "no" if options.get("ssl_cert_reqs") == "none" else "yes"  # older ones check no name
    told = options.get("ssl_check_hostname", checks)
    return options | {"ssl_check_hostname": told.lower() in {"1", "true", "yes"}}


def _run(client: Client, script: Script, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
    from redis.exceptions import NoScriptError

    words = (len(keys), *keys, *arguments)
    try:
        return client.execute_command("EVALSHA", script.sha, *words)
    except NoScriptError:  # the server is new to it, or was started again
        return client.execute_command("EVAL", script.source, *words)


def _run_before(
    client: Client, after: Command, script: Script, keys: Sequence[str], arguments: Sequence[Word]
) -> tuple[Any, Any]:
    """Run a script, and a command after it over the same connection, whose error is returned.

    The script's text goes along: for one that the server does not know there would be a wait first.
    """
    from redis.exceptions import RedisError

    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("EVAL", script.source, len(keys), *keys, *arguments)
        pipe.execute_command(*after)
        answer, second = pipe.execute(raise_on_error=False)
    if isinstance(answer, RedisError):
        raise answer
    return answer, second


def _scratch(key: str) -> str:
    return f"{key}:rehearsal"
