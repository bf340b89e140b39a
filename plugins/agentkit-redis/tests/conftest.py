"""One server for all tests of a process, and an empty library for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit.testing.local_server import ServerError
from agentkit_redis.testing import empty_library, redis_server_url

pytest.register_assert_rewrite("agentkit.testing.conformance")


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """URL of a Redis server; skips where there is none and none can be started."""
    try:
        with redis_server_url() as url:
            yield url
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture
def library_url(server_url: str) -> Iterator[str]:
    """URL of an empty library."""
    with empty_library(server_url) as url:
        yield url
