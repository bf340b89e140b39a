"""What tests of faults stand on: a URL of each kind of store, and disks that are small.

A new store is one line in ``FILE_STORES`` or ``SERVER_STORES``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FILE_STORES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder / 'store.db'}",
    "dir": lambda folder: f"dir:{folder / 'library'}",
}
"""URLs of stores in a folder."""


@pytest.fixture(params=FILE_STORES)
def url_in(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Gives the URL of a store in a folder, for each kind of store that is files."""
    return FILE_STORES[request.param]


SERVER_STORES: dict[str, str] = {}
"""Fixtures that give the URL of an empty store in a server, by the name of the store."""


@pytest.fixture(params=[*FILE_STORES, *SERVER_STORES])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, for each kind of store that several programs may use."""
    if request.param in FILE_STORES:
        return FILE_STORES[request.param](tmp_path)
    url: str = request.getfixturevalue(SERVER_STORES[request.param])
    return url


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
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of two megabytes in memory; only root can make one."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
