"""The Redis store passes the tests of all stores, on a real server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.store_conformance import ServedStoreConformance

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange
from agentkit.testing.conformance.formats import EditDefinitions


class TestRedisStore(ServedStoreConformance):
    """The store of the plugin."""

    @pytest.fixture
    def store_url(self, library_url) -> str:
        return library_url

    @pytest.fixture
    def newer_store_url(self, library_url, raw) -> str:
        store = open_store(library_url)
        change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        store.commit(change, expected_version=0)
        store.close()
        client, keys = raw(library_url)
        client.hset(keys.head, "format", "agentkit-redis 2")
        return library_url

    @pytest.fixture
    def raw_contents(self, raw) -> Callable[[str], object]:
        def read(url: str) -> object:
            client, keys = raw(url)
            return [client.dump(key) for key in keys.all]

        return read

    @pytest.fixture
    def edit_definitions(self, raw) -> EditDefinitions:
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            client, keys = raw(url)
            for digest, body in client.hgetall(keys.definitions).items():
                client.hset(keys.definitions, digest, edit(body.decode()))

        return edit_all
