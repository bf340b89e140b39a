"""A PostgreSQL server for tests: one that runs already, or one of their own."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

import psycopg
from psycopg import sql

from support.local_server import LocalServer, ServerError, find_program

URL_VARIABLE = "AGENTKIT_TEST_POSTGRES_URL"
"""Names a server to use instead of one that is started; its user may make schemas."""

_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/usr/local/pgsql/bin",
)

_USER, _PASSWORD, _DATABASE = "agentkit", "s3cret/pass word", "postgres"


class PostgresServer(LocalServer):
    """A PostgreSQL of this machine, with an empty database and a user who has a password.

    It flushes to the disk like one in production. As root it runs as the user ``postgres``.

    Args:
        options: Further settings, such as ``("fsync=off",)``.

    Raises:
        ServerError: The programs of PostgreSQL are not on this machine.

    Example:
        >>> from agentkit import open_store
        >>> from support.postgres_server import PostgresServer
        >>> with PostgresServer() as server:  # doctest: +SKIP
        ...     store = open_store(server.url)
    """

    def __init__(self, *, options: Sequence[str] = ()) -> None:
        self._options = tuple(options)
        self._programs = {name: _program(name) for name in ("initdb", "postgres")}
        # After a crash it flushes its whole folder first, which takes a while on a busy disk.
        super().__init__(user="postgres", start_seconds=90.0)

    @property
    def url(self) -> str:
        """Of its database, over TCP."""
        return self.url_of(port=self.port)

    def url_of(self, *, port: int, user: str = _USER, password: str = _PASSWORD) -> str:
        """The same at another port, such as that of a ``TcpProxy``, or for another user."""
        secret = quote(password, safe="")
        return f"postgresql://{user}:{secret}@127.0.0.1:{port}/{_DATABASE}"

    def start(self) -> None:
        """Start it, and make its folder when there is none."""
        if not self._data.exists():
            self._make_data()
        deadline = monotonic() + self._start_seconds
        while True:
            try:
                super().start()
            except ServerError as error:
                # Killed, its children hold their memory until they have seen it.
                if "shared memory block" not in str(error) or monotonic() > deadline:
                    raise
                sleep(0.1)
            else:
                return

    def restart(self, *, kill: bool = False) -> None:
        """End it, in good order or at once, and start it again on the same data and port."""
        self.kill() if kill else self.stop()
        self.start()

    def command(self) -> Sequence[str]:
        """See ``LocalServer.command``."""
        settings = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            "shared_buffers=32MB",
            "max_connections=60",
            *self._options,
        ]
        places = [part for setting in settings for part in ("-c", setting)]
        return [self._programs["postgres"], "-D", str(self._data), *places]

    def answers(self) -> bool:
        """See ``LocalServer.answers``."""
        try:
            with psycopg.connect(self.url, connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def _make_data(self) -> None:
        secret = self.folder / "password"
        secret.write_text(_PASSWORD)
        secret.chmod(0o644)
        made = subprocess.run(
            [
                *(self._programs["initdb"], "-D", str(self._data), "-U", _USER),
                *("--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-locale"),
                "--no-sync",
            ],
            cwd=self.folder,
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        secret.unlink()
        if made.returncode:
            raise ServerError(f"initdb failed:\n{made.stderr}")

    @property
    def _data(self) -> Path:
        return self.folder / "data"


@contextmanager
def postgres_url() -> Iterator[str]:
    """URL of a server: the one that ``AGENTKIT_TEST_POSTGRES_URL`` names, or one of our own.

    Raises:
        ServerError: There is neither; a test is skipped then.
    """
    existing = os.environ.get(URL_VARIABLE)
    if existing:
        yield existing
        return
    with PostgresServer() as server:
        yield server.url


@contextmanager
def empty_store_url(server_url: str) -> Iterator[str]:
    """URL of an empty store: a schema of its own.

    It goes afterwards from a server that stays; with one of our own it goes when that does.
    """
    schema = f"agentkit_test_{secrets.token_hex(6)}"
    yield with_schema(server_url, schema)
    if server_url == os.environ.get(URL_VARIABLE):
        drop_schema(server_url, schema)


def with_schema(server_url: str, schema: str) -> str:
    """The URL of a store in a schema."""
    mark = "&" if "?" in server_url else "?"
    return f"{server_url}{mark}schema={quote(schema, safe='')}"


def drop_schema(server_url: str, schema: str) -> None:
    """Drop a schema with all that is in it; one that is not there is no matter."""
    with psycopg.connect(server_url, autocommit=True) as raw:
        raw.execute("SET client_min_messages = warning")
        raw.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def _program(name: str) -> str:
    found = find_program(name, folders=_FOLDERS)
    if found is None:
        raise ServerError(
            f"PostgreSQL's program {name!r} is not on this machine; install it (Debian: apt-get "
            f"install postgresql) or name a server in {URL_VARIABLE}"
        )
    return found
