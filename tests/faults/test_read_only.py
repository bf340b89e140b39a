"""A file system that became read-only: a clear error, and nothing changed."""

from __future__ import annotations

from contextlib import closing

import pytest

from agentkit import open_store
from agentkit.errors import StoreError
from agentkit.testing.conformance.writer import batch, commit_many

pytestmark = pytest.mark.faults


def contents(folder):
    """The bytes of all files."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_and_commit(url, library):
    """Open a store, see that it holds the library, and commit to it."""
    with closing(open_store(url)) as store:
        assert store.load().definitions == library.definitions
        store.commit(batch("q", 0), expected_version=3)


def test_a_read_only_disk_is_named(url_in, small_disk):
    """A store there is opened to be read, or refused with the reason; a commit is refused."""
    url = url_in(small_disk.folder)
    with closing(open_store(url)) as store:
        commit_many(store, "p", 3)
        library = store.load()
    before = contents(small_disk.folder)
    small_disk.make_read_only()
    with pytest.raises(StoreError, match=r"read-only|Read-only|may not write|right to write"):
        read_and_commit(url, library)
    assert contents(small_disk.folder) == before
    small_disk.make_writable()
    with closing(open_store(url)) as store:
        assert store.load().digest == library.digest
        assert store.commit(batch("q", 0), expected_version=3) == 4
