"""A server whose store is locked, hangs or is full: it stays alive, says so, hides and loses nothing."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing, contextmanager

import httpx
import pytest
from support.unreliable_store import UnreliableStore

from agentkit import open_store
from agentkit.library.sqlite.store import SQLiteStore

URL = "/v1/chat/completions"
ADD = 'call add {"a": 1, "b": 2}'


@contextmanager
def locked(path):
    """Another program holds the write lock of the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def longest_answer(client, done):
    """The longest time that ``/healthz`` took until then."""
    longest = 0.0
    while not done.is_set():
        began = time.perf_counter()
        assert (await client.get("/healthz")).status_code == 200
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(0.01)
    return longest


@pytest.mark.parametrize("stream", [False, True])
async def test_clients_that_leave_while_the_file_is_locked(
    make_app, served, body, no_tls, tmp_path, stream
):
    """The event loop goes on meanwhile, and each run that was cut is kept when the lock is gone."""
    path = tmp_path / "library.db"
    with closing(SQLiteStore(path, timeout_seconds=3)) as store:
        app = make_app(agent={"store": store})
        done = asyncio.Event()
        with served(app) as url:
            async with httpx.AsyncClient(verify=no_tls, base_url=url, timeout=30) as client:
                with locked(path):
                    watching = asyncio.create_task(longest_answer(client, done))
                    asking = [
                        client.post(
                            URL, json=body('call nap {"seconds": 30}', stream=stream), timeout=0.3
                        )
                        for _ in range(5)
                    ]
                    left = await asyncio.gather(*asking, return_exceptions=True)
                    await asyncio.sleep(1)
                done.set()
                longest = await watching
            while len(app.state.runs):
                await asyncio.sleep(0.01)
        assert all(isinstance(one, httpx.TimeoutException) for one in left)
        assert longest < 1
        kept = list(store.select())
    assert [episode.stop_reason for episode in kept] == ["cancelled"] * 5
    assert {call.name for episode in kept for call in episode.calls} == {"nap"}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_says_that_a_run_is_not_kept_and_its_record_follows(
    make_app, talk, body, store, stream
):
    """A tool ran and the store failed: the client hears both, the store gets the true episode."""
    far = UnreliableStore(store, episode_faults=["refused"])
    app = make_app(agent={"store": far})
    async with app.router.lifespan_context(app), talk(app) as client:
        answer = await client.post(URL, json=body(ADD, stream=stream))
        told = re.search(r'"episode_id": ?"(\w+)"', answer.text)[1]
        assert re.search(r'"episode_kept": ?false', answer.text)
        assert "[DONE]" not in answer.text
        if not stream:
            assert answer.status_code == 503
            assert answer.headers["x-should-retry"] == "false"
            assert "retry-after" not in answer.headers
    (episode,) = store.select()
    assert (episode.episode_id, episode.stop_reason) == (told, "finished")
    assert [result.value for result in episode.results] == [3]


class HangingStore(UnreliableStore):
    """A store that answers nobody who reads or writes episodes before it is let go."""

    def __init__(self, store):
        super().__init__(store)
        self.go_on, self.asked = threading.Event(), 0

    def get(self, episode_id):
        """Read it, in the end."""
        self.asked += 1
        assert self.go_on.wait(20)
        return super().get(episode_id)


async def test_a_probe_of_a_store_that_hangs_is_answered(make_app, talk, store):
    """``/readyz`` says no in bounded time, asks once however often it is asked, and recovers."""
    hanging = HangingStore(store)
    async with talk(make_app(agent={"store": hanging})) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
        assert hanging.asked == 1
        hanging.go_on.set()
        while (await client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["reason"] for answer in answers} == {"store"}


def asked(seconds, **fields):
    """A request of the server of ``start`` that takes so long."""
    messages = [{"role": "user", "content": str(seconds)}]
    return {"model": "agent", "messages": messages, **fields}


async def test_a_server_that_stops_says_how_many_runs_are_not_kept(start, tmp_path, no_tls):
    """With the file locked to the end: the count, and a file to import that holds each of them."""
    path = tmp_path / "library.db"
    async with (
        start("--drain", "0.1") as (process, url),
        httpx.AsyncClient(verify=no_tls, base_url=url, timeout=60) as client,
    ):
        assert (await client.post(URL, json=asked(0))).status_code == 200
        with locked(path):
            slow = [asyncio.create_task(client.post(URL, json=asked(60))) for _ in range(3)]
            while "agentkit_runs_started_total 4\n" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.02)
            process.terminate()
            answers = await asyncio.gather(*slow)
            _, rest = await asyncio.wait_for(process.communicate(), 60)
    said = rest.decode()
    assert process.returncode == 0
    assert "Stopped; 3 runs of 4 are not in the store: " in said
    assert "every run that began is kept" not in said
    assert {answer.json()["error"]["code"] for answer in answers} == {"stopping"}
    assert {answer.json()["error"]["episode_kept"] for answer in answers} == {False}
    (unkept,) = tmp_path.glob("library-unkept-*.jsonl")
    assert unkept.stat().st_mode & 0o777 == 0o600
    from agentkit.episodes.files import read_episodes

    ids = {answer.json()["error"]["episode_id"] for answer in answers}
    assert {episode.episode_id for episode in read_episodes(unkept)} == ids


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
async def test_a_full_disk_stops_runs_and_recovers(start, tmp_path, no_tls):
    """A real file that cannot grow: runs are refused, and with room again all is kept."""
    async with (
        start() as (process, url),
        httpx.AsyncClient(verify=no_tls, base_url=url, timeout=60) as client,
    ):
        assert (await client.post(URL, json=asked(0))).status_code == 200
        size = (
            (tmp_path / "library.db-wal").stat().st_size
            if (tmp_path / "library.db-wal").exists()
            else (tmp_path / "library.db").stat().st_size
        )
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        long = asked(0)
        long["messages"].insert(0, {"role": "user", "content": "x"})
        long["metadata"] = {"label": "x" * 400}
        statuses = [(await client.post(URL, json=long)).status_code for _ in range(30)]
        ready = await client.get("/readyz")
        resource.prlimit(
            process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        while (await client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.05)
        assert (await client.post(URL, json=asked(0))).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, rest = await process.communicate()
    assert 503 in statuses
    assert ready.status_code == 503
    said = rest.decode()
    assert said.count("the store takes no episodes, ") == 1
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "Stopped; every run that began is kept as an episode."
    with closing(open_store(tmp_path / "library.db")) as store:
        kept = list(store.select())
    assert len(kept) == 2 + statuses.count(200) + 1
    assert {episode.stop_reason for episode in kept} == {"finished"}
