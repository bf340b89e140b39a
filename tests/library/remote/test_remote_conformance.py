"""What is committed behind a server is read through it as every store must give it.

A read-only store can not run suites that write. So each store here writes into a SQLite file and
reads through a real server of that file: all that the suites say of reading is asked of
``RemoteStore``, and what they say of writing of SQLite, which has tests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.store_conformance import ServedStoreConformance

from agentkit import Library, open_store
from agentkit.library import AppliedChange, LibraryChange, Store, ToolRevision
from agentkit.library.events import LibraryEvent
from agentkit.library.remote import RemoteStore
from agentkit.testing import EventStoreConformance, ToolStoreConformance
from agentkit.testing.conformance.contents import StoreContentConformance
from agentkit.testing.conformance.fixtures import OpenAgain


class ServedStore:
    """Writes into one store and reads from another."""

    def __init__(self, written: Store, read: RemoteStore) -> None:
        self._written, self._read = written, read

    def load(self, version: int | None = None) -> Library:
        return self._read.load(version)

    def versions(self) -> Sequence[int]:
        return self._read.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        return self._read.history(tool_name)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        return self._read.events(after=after)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        return self._read.changes(after=after)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        return self._written.commit(change, expected_version=expected_version)

    def append(self, episode: Any) -> None:
        self._written.append(episode)

    def get(self, episode_id: str) -> Any:
        return self._written.get(episode_id)

    def select(self, matching: Any = None) -> Any:
        return self._written.select(matching)

    def close(self) -> None:
        self._read.close()
        self._written.close()


class TestRemoteStore(ToolStoreConformance, EventStoreConformance, StoreContentConformance):
    """Everything about definitions and events; episodes are not served."""

    test_readers_see_whole_snapshots = (
        ServedStoreConformance.test_readers_see_whole_snapshots_while_a_process_commits
    )
    # That ten thousand tools go through takes a second each way; test_catching_up has several pages.
    test_a_large_library_is_one_commit = None
    test_a_large_library_is_caught_up_by_what_changed = None

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'served.db'}"

    @pytest.fixture
    def open_store_again(
        self, store_url: str, serve: Callable[..., str], open_remote: Callable[..., RemoteStore]
    ) -> Iterator[OpenAgain]:
        opened = [open_store(store_url)]
        url = serve(opened[0])

        def open_one() -> Store:
            written = open_store(store_url)
            opened.append(written)
            return ServedStore(written, open_remote(url))

        yield open_one
        for one in opened[1:]:
            one.close()
