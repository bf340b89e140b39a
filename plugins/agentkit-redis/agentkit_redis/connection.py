"""Connections to Redis, and its refusals in our words."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit_redis.address import RedisAddress
from agentkit_redis.scripts import REHEARSE, Script

if TYPE_CHECKING:
    from redis import RedisError

_REFUSALS = {
    "OOM": (
        "has no memory left (maxmemory). Nothing was changed; give it more with CONFIG SET "
        "maxmemory, or let old episodes go (prune), and try again"
    ),
    "READONLY": (
        "is a replica and takes no writes. Nothing was changed; write the address of the primary "
        "into the URL (reading works here)"
    ),
    "MISCONF": (
        "cannot save to its disk, which may be full, and takes no writes. Nothing was changed; "
        "see the log of the server, make room, and it takes writes again by itself"
    ),
    "NOPERM": (
        "does not let this user do that. Nothing was changed; give the user the keys ~{keys} and "
        "the channels &{keys} and the commands that the README of agentkit-redis lists"
    ),
    "WRONGTYPE": (
        "holds data of another program under the keys {keys}. Nothing was changed; choose another "
        "prefix with ?prefix="
    ),
    "LOADING": "is still reading its data from the disk; try again in a moment",
    "NOREPLICAS": (
        "misses the replicas that it wants for a write (min-replicas-to-write). Nothing was "
        "changed; try again when they are back"
    ),
    "BUSY": "is busy with a long script of somebody; try again in a moment",
    "MASTERDOWN": (
        "is a replica that lost its primary and may not answer meanwhile; try again later"
    ),
    "CLUSTERDOWN": (
        "belongs to a cluster that is down: not all slots are served; try again when it is whole"
    ),
    "TRYAGAIN": "is moving the keys to another node of its cluster; try again in a moment",
    "MOVED": (
        "is one node of a cluster, and another one holds the keys {keys}. All keys of a library "
        "lie on one node: write its address, which the answer names, into the URL"
    ),
    "ASK": (
        "is moving the keys {keys} to another node of its cluster; try again later, with the "
        "address of that node"
    ),
}

_PASSING = ("LOADING", "NOREPLICAS", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "ASK")
"""Those that trying again may mend."""

_LOGIN = (
    "refuses the user or the password. Write the right ones into the URL: "
    "redis://USER:PASSWORD@HOST, with %40 for @ and %2F for /"
)

_SILENT = ". A server without TLS is silent, too: write redis:// for one"

_CODES = {
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "NoPermissionError": "NOPERM",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "TryAgainError": "TRYAGAIN",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
}
"""Of these redis-py makes classes, and takes the code out of the words."""

_CODE = re.compile(rf"(?:^|[\s-])({'|'.join(_REFUSALS)})\b")
"""A server before version 7 puts the code of a script's error in the middle of the line."""

_NO_RIGHT = "can't run this command"


@contextmanager
def translated(address: RedisAddress) -> Iterator[None]:
    """Raise what redis-py raises as an error of a store."""
    from redis import RedisError

    try:
        yield
    except RedisError as error:
        raise _in_our_words(error, address) from error


def _in_our_words(error: RedisError, address: RedisAddress) -> StoreError:
    from redis import exceptions

    match error:
        case exceptions.AuthenticationError():  # a ConnectionError, too
            return StoreError(f"{address} {_LOGIN}. It says: {error}")
        case exceptions.BusyLoadingError():
            return _refusal("LOADING", error, address)
        case exceptions.TimeoutError():
            return StoreUnavailableError(
                f"{address} gave no answer in {address.timeout_seconds:g} s. Whether it did what "
                "was asked, nobody knows: ask for the same again, nothing is done twice"
                f"{_SILENT if address.uses_tls else ''}"
            )
        case exceptions.ConnectionError():
            return StoreUnavailableError(
                f"{address} cannot be reached: {error}. Start the server, or mend the address or "
                f"the network{_tls_advice(error, address)}; then ask for the same again, nothing "
                "is done twice"
            )
        case _:
            code = _code_of(error)
            if code:
                return _refusal(code, error, address)
            return StoreError(f"{address} says {type(error).__name__}: {error}")


def _refusal(code: str, error: RedisError, address: RedisAddress) -> StoreError:
    words = _REFUSALS[code].format(keys=f"{{{address.prefix}}}:*")
    kind = StoreUnavailableError if code in _PASSING else StoreError
    if code == "WRONGTYPE":
        kind = StoreFormatError
    return kind(f"{address} {words}. It says: {code} {error}")


def _code_of(error: RedisError) -> str:
    """The code that the server's answer began with; empty for one that we do not know."""
    code = _CODES.get(type(error).__name__, "")
    found = _CODE.search(str(error))
    if not code and found:
        code = found[1]
    return code or ("NOPERM" if _NO_RIGHT in str(error) else "")


def _tls_advice(error: RedisError, address: RedisAddress) -> str:
    words = str(error).upper()
    if "SSL" in words or "CERTIFICATE" in words:
        return (
            ", or the encryption (redis:// for a server without TLS, "
            "ssl_ca_certs=FILE for a certificate of your own)"
        )
    return "" if address.uses_tls else ", or write rediss:// if the server wants TLS"


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


def new_client(address: RedisAddress) -> Client:
    """A client with a pool of its own, which retries nothing by itself."""
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
            health_check_interval=_IDLE_SECONDS,
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
