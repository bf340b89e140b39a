"""Fixtures of the plugin: one server for all tests of a process, and a schema for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit.testing.local_server import ServerError
from agentkit_postgres.testing import empty_store_url, postgres_url

pytest.register_assert_rewrite("agentkit.testing.conformance")


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A PostgreSQL: that of AGENTKIT_TEST_POSTGRES_URL, or one that is started here."""
    try:
        with postgres_url() as url:
            yield url
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture
def store_url(server_url: str) -> Iterator[str]:
    """URL of an empty store."""
    with empty_store_url(server_url) as url:
        yield url
