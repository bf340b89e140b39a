"""A server on a replica: new versions by themselves, and what it says while its store is away."""

from __future__ import annotations

import asyncio
import time

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange, Replica
from agentkit.library.episode_stores import with_episodes
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelResponse

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


async def test_a_committed_tool_is_served_without_a_restart(store, make_app, talk, body):
    """The server need not be told, and has no timer of its own for it."""
    with Replica(store, refresh_seconds=0.01) as replica:
        app = make_app(say_offered, agent={"store": replica, "tools": ()}, refresh_seconds=0.001)
        async with app.router.lifespan_context(app), talk(app) as client:
            put(store, "fresh")
            until = time.monotonic() + 20
            while replica.load().version == 0 and time.monotonic() < until:
                await asyncio.sleep(0.005)
            answer = await client.post(URL, json=body("Which?"))
    assert answer.json()["choices"][0]["message"]["content"] == "fresh"


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


async def test_beyond_the_bound_a_server_may_refuse(far, make_app, talk, body):
    """With ``refuse`` it is not ready, and answers no request from a library of unknown age."""
    now = [0.0]
    options = {"max_staleness_seconds": 7200.0, "clock": lambda: now[0]}
    with Replica(far, refresh_seconds=3600, **options) as replica:
        replica.refresh()
        app = make_app(agent={"store": replica})
        async with talk(app) as client:
            assert (await client.get("/readyz")).status_code == 200
            now[0] += 7201
            ready = await client.get("/readyz")
            answer = await client.post(URL, json=body("Hello."))
            alive = await client.get("/healthz")
            replica.refresh()
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.post(URL, json=body("Hello."))).status_code == 200
    assert (ready.status_code, ready.json()["reason"]) == (503, "stale")
    assert (answer.status_code, alive.status_code) == (503, 200)


async def test_serve_follows_its_store(start, tmp_path):
    """A tool that another process commits is served by a running server."""
    import httpx

    store = open_store(tmp_path / "library.db")
    async with start("--catalogue", "--refresh", "0.5") as (process, url):
        put(store, "fresh")
        async with httpx.AsyncClient() as client:
            until = time.monotonic() + 20
            while time.monotonic() < until:
                shown = gauges((await client.get(f"{url}/metrics")).text)
                if shown["agentkit_library_version"] == 1:
                    break
                await asyncio.sleep(0.02)
        process.terminate()
    store.close()
    assert (shown["agentkit_library_version"], shown["agentkit_store_away"]) == (1, 0)
