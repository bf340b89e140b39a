"""A server on a replica: new versions by themselves, and what it says while its store is away."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from click.testing import CliRunner
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store
from agentkit.cli.main import main
from agentkit.errors import StoreError
from agentkit.library import LibraryChange, Replica
from agentkit.library.episode_stores import with_episodes
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelResponse
from agentkit.tools.definition import Description

URL = "/v1/chat/completions"


def say_offered(request):
    """Answers with the names of the tools that it was offered."""
    text = ",".join(tool.name for tool in request.tools)
    return ModelResponse(message=AssistantMessage(text=text), finish_reason="stop")


def put(store, name):
    """Commits a tool."""
    change = LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))
    store.commit(change, expected_version=max(store.versions(), default=0))


@pytest.fixture
def far(store):
    """A store that may go away."""
    return UnreliableStore(store)


def gauges(text):
    """The unlabelled samples of a page of metrics."""
    lines = (line.split(" ") for line in text.splitlines() if line[0] != "#" and "{" not in line)
    return {name: float(value) for name, value in lines}


async def test_while_the_store_is_away_the_server_is_degraded_and_ready(far, make_app, talk, body):
    """It answers with the last library, and says so where machines look."""
    put(far, "tool")
    with Replica(far, refresh_seconds=3600) as replica:
        both = with_episodes(replica, episodes=open_store("memory:"))
        app = make_app(say_offered, agent={"store": both, "tools": ()})
        async with talk(app) as client:
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            far.away()
            with pytest.raises(StoreError):
                replica.refresh()
            ready = await client.get("/readyz")
            shown = gauges((await client.get("/metrics")).text)
            answer = await client.post(URL, json=body("Which?"))
            far.back()
            replica.refresh()
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            after = gauges((await client.get("/metrics")).text)
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert ready.json()["reason"].startswith("the store is away; library version 1 was the newest")
    assert shown["agentkit_store_away"] == shown["agentkit_library_refresh_failures_total"] == 1
    assert (shown["agentkit_library_version"], shown["agentkit_library_behind"]) == (1, 0)
    assert shown["agentkit_library_staleness_seconds"] > 0
    assert answer.json()["choices"][0]["message"]["content"] == "tool"
    assert after["agentkit_store_away"] == 0


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
