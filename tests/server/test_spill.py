"""``agentkit serve --spill`` answers on while its store is away, and no episode is lost."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import httpx
import pytest

from agentkit import open_store

URL = "/v1/chat/completions"
ASKED = {"model": "agent", "messages": [{"role": "user", "content": "0"}]}


@pytest.fixture
def serve(start, tmp_path):
    """A server that keeps waiting episodes in a folder, and a client of it."""

    @asynccontextmanager
    async def run(*options):
        async with (
            start("--spill", str(tmp_path / "spilled"), "--open-metrics", *options) as (
                process,
                url,
            ),
            httpx.AsyncClient(base_url=url, timeout=30) as client,
        ):
            yield process, client

    return run


@pytest.fixture
def place(tmp_path):
    """Takes the store away and puts it back."""
    path, elsewhere = tmp_path / "library.db", tmp_path / "elsewhere"
    names = ("", "-wal", "-shm")

    def move(*, away):
        here, there = (path, elsewhere) if away else (elsewhere, path)
        for name in names:
            if (file := here.with_name(here.name + name)).exists():
                file.rename(there.with_name(there.name + name))

    return move


async def episode_of(client):
    """The id of the episode of an answer."""
    answer = await client.post(URL, json=ASKED)
    assert answer.status_code == 200, answer.text
    return answer.json()["agentkit"]["episode_id"]


async def eventually(holds):
    """Wait until something that is asked for holds."""
    until = time.monotonic() + 20
    while not await holds():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


def kept(tmp_path):
    """The ids of the episodes in the store, oldest first."""
    store = open_store(tmp_path / "library.db")
    try:
        return [episode.episode_id for episode in store.select()][::-1]
    finally:
        store.close()


async def test_answers_go_on_and_their_episodes_follow(serve, place, tmp_path):
    """The server says that it is degraded and stays ready; when the store is back it has all."""

    async def is_degraded():
        ready = await client.get("/readyz")
        assert ready.status_code == 200
        return "episodes wait for their store" in ready.json().get("reason", "")

    async def none_waits():
        lines = (await client.get("/metrics")).text.splitlines()
        return {"agentkit_episodes_in_memory 0", "agentkit_episodes_in_files 0"} <= set(lines)

    async def is_well():
        return (await client.get("/readyz")).json() == {"status": "ok"}

    async with serve("--refresh", "0.2") as (process, client):
        ids = [await episode_of(client)]
        await eventually(none_waits)
        place(away=True)
        ids += [await episode_of(client) for _ in range(3)]
        await eventually(is_degraded)
        assert not await none_waits()
        place(away=False)
        await eventually(none_waits)
        await eventually(is_well)
        ids.append(await episode_of(client))
        process.terminate()
        await process.communicate()
    assert kept(tmp_path) == ids


async def test_what_waits_at_the_end_is_taken_in_by_the_next_start(serve, place, tmp_path):
    """A server that is stopped while its store is away writes a file."""
    async with serve() as (process, client):
        place(away=True)
        ids = [await episode_of(client)]
        process.terminate()
        await process.communicate()
        assert process.returncode == 0
    assert len(list((tmp_path / "spilled").glob("*.jsonl"))) == 1
    place(away=False)
    async with serve() as (process, client):
        ids.append(await episode_of(client))
        process.terminate()
        await process.communicate()
    assert kept(tmp_path) == ids
