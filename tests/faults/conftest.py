"""What tests of faults stand on: a URL of each kind of store, disks that are small, networks.

A new store is one line in ``FILE_STORES``, or in ``SERVER_STORES`` with its fixtures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.local_server import LocalServer, ServerError
from support.tcp_proxy import TcpProxy

FILE_STORES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'store.db'}",
    "dir": lambda folder: f"dir:{folder / 'library'}",
}
"""URLs of stores in a folder."""

SERVER_STORES = ("postgres", "redis")
"""Stores in a server of their own; the fixture ``NAME_store`` gives one."""


@dataclass(frozen=True)
class ServedStore:
    """An empty store in a server.

    Attributes:
        url: The store's.
        server: That it is in; it may be killed.
    """

    url: str
    server: LocalServer


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL of these tests."""
    testing = pytest.importorskip("support.postgres_server")
    yield from _running(testing.PostgresServer)


@pytest.fixture(scope="session")
def redis_server():
    """A Redis of these tests, which writes to the disk before it answers.

    Without that it may keep commits in its own memory for two seconds while the disk is busy, and
    loses them with its process.
    """
    testing = pytest.importorskip("support.redis_server")
    yield from _running(lambda: testing.RedisServer({"appendfsync": "always"}))


@pytest.fixture
def postgres_store(postgres_server):
    """A schema of its own."""
    from support.postgres_server import empty_store_url

    with empty_store_url(postgres_server.url) as url:
        yield ServedStore(url=url, server=postgres_server)


@pytest.fixture
def redis_store(redis_server):
    """A prefix of its own."""
    from support.redis_server import empty_library

    with empty_library(redis_server.url) as url:
        yield ServedStore(url=url, server=redis_server)


@pytest.fixture(params=SERVER_STORES)
def served_store(request):
    """An empty store in a server, for each kind."""
    store: ServedStore = request.getfixturevalue(f"{request.param}_store")
    return store


@pytest.fixture(params=[*FILE_STORES, *SERVER_STORES])
def store_url(request, tmp_path):
    """The URL of an empty store, for each kind that several programs may use."""
    if request.param in FILE_STORES:
        return FILE_STORES[request.param](tmp_path)
    store: ServedStore = request.getfixturevalue(f"{request.param}_store")
    return store.url


@pytest.fixture(params=FILE_STORES)
def url_in(request):
    """Gives the URL of a store in a folder, for each kind of store that is files."""
    return FILE_STORES[request.param]


@pytest.fixture
def proxy(served_store):
    """A network in front of the server, which can be cut."""
    with TcpProxy(port=served_store.server.port) as proxy:
        yield proxy


@pytest.fixture
def url_through(served_store, proxy):
    """The URL of the same store on the other side of the network."""
    port = urlsplit(served_store.url).port
    return served_store.url.replace(f":{port}/", f":{proxy.port}/")


@dataclass(frozen=True)
class Disk:
    """A file system of its own.

    Attributes:
        folder: Where it is mounted.
    """

    folder: Path

    def make_read_only(self) -> None:
        """Refuse writing from now on; nobody may have a file open for it."""
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)

    def make_writable(self) -> None:
        """Allow writing again."""
        subprocess.run(["mount", "-o", "remount,rw", self.folder], check=True)


@pytest.fixture
def mount_disk():
    """Mounts a disk in memory of so many megabytes; only root can."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    with ExitStack() as mounted:
        yield lambda megabytes: _mount(megabytes, mounted)


@pytest.fixture
def small_disk(mount_disk):
    """A disk of two megabytes."""
    return mount_disk(2)


def _mount(megabytes: int, mounted: ExitStack) -> Disk:
    folder = Path(tempfile.mkdtemp(prefix="agentkit-disk-"))
    mounted.callback(folder.rmdir)
    folder.chmod(0o755)  # servers run as users of their own
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    mounted.callback(subprocess.run, ["umount", folder], check=True)
    mounted.callback(_empty, folder)
    return Disk(folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _running(server: Callable[[], LocalServer]) -> Iterator[LocalServer]:
    try:
        made = server()
    except ServerError as error:
        pytest.skip(str(error))
    with made:
        yield made
