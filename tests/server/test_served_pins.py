"""The kill switch reaches an agent that ``agentkit serve --catalogue`` serves."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from click.testing import CliRunner

from agentkit import ToolDefinition, open_store
from agentkit.cli.main import main
from agentkit.library import LibraryChange
from agentkit.tools.definition import Description

URL = "/v1/chat/completions"
ASKED = {"model": "agent", "messages": [{"role": "user", "content": "0"}]}


@pytest.fixture
def two_versions(tmp_path):
    """The URL of a store in which a tool was changed."""
    path = tmp_path / "library.db"
    store = open_store(path)
    for version, text in enumerate(("as it was", "as it is")):
        tool = ToolDefinition(name="price", description=Description(summary=text))
        change = LibraryChange(proposal_id=text, upserts=(tool,))
        store.commit(change, expected_version=version)
    store.close()
    return f"sqlite:///{path}"


async def served_version(client, wanted):
    """The library version of an answer, asked for until it is the wanted one or time is over."""
    until = time.monotonic() + 20
    while True:
        answer = (await client.post(URL, json=ASKED)).json()
        found = answer["agentkit"]["library_version"]
        if found == wanted or time.monotonic() > until:
            return found
        await asyncio.sleep(0.02)


def rollback(store_url, *arguments):
    """Runs ``agentkit rollback ...`` as another process would."""
    done = CliRunner().invoke(main, ["rollback", *arguments, "--store", store_url])
    assert done.exit_code == 0, done.output


async def test_a_pin_is_served_until_it_is_taken_away(start, two_versions):
    """A person pins an older version by the command line, and no server is started anew."""
    async with (
        start("--catalogue", "--refresh", "0.2") as (process, url),
        httpx.AsyncClient(base_url=url) as client,
    ):
        assert await served_version(client, 2) == 2
        await asyncio.to_thread(rollback, two_versions, "--pin", "1", "--reason", "complaints")
        assert await served_version(client, 1) == 1
        await asyncio.to_thread(rollback, two_versions, "--unpin", "--reason", "all is well")
        assert await served_version(client, 2) == 2
        process.terminate()
