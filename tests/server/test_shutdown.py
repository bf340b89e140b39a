"""A server that is told to stop loses no episode: a real process, a real signal, SQLite."""

import asyncio
import signal
import socket
import threading
from contextlib import suppress

import httpx

from agentkit import open_store

URL = "/v1/chat/completions"


def chat(seconds, **fields):
    """A request that takes so long."""
    messages = [{"role": "user", "content": str(seconds)}]
    return {"model": "agent", "messages": messages, **fields}


async def begun(client, number):
    """Wait until so many runs have begun."""
    while f"agentkit_runs_started_total {number}\n" not in (await client.get("/metrics")).text:
        await asyncio.sleep(0.02)


async def test_a_stopped_server_answers_what_it_began(start, tmp_path, no_tls):
    """Runs that end in time are answered; those that do not are cut; all of them are kept."""
    async with (
        start("--drain", "0.8") as (process, url),
        httpx.AsyncClient(verify=no_tls, base_url=url, timeout=20) as client,
    ):
        quick = [asyncio.create_task(client.post(URL, json=chat(0.5))) for _ in range(4)]
        slow = asyncio.create_task(client.post(URL, json=chat(60)))
        streamed = asyncio.create_task(client.post(URL, json=chat(61, stream=True)))
        await begun(client, 6)
        process.terminate()
        answers = await asyncio.gather(*quick)
        cut = [await slow, await streamed]
        status = await asyncio.wait_for(process.wait(), 20)
    assert status == 0
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.status_code for answer in cut] == [503, 503]
    assert {answer.json()["error"]["code"] for answer in cut} == {"stopping"}
    with_id = {answer.json()["id"].removeprefix("chatcmpl-") for answer in answers}
    cut_ids = {answer.json()["error"]["episode_id"] for answer in cut}
    store = open_store(tmp_path / "library.db")
    kept = {episode.episode_id: episode.stop_reason for episode in store.select()}
    store.close()
    assert kept == dict.fromkeys(with_id, "finished") | dict.fromkeys(cut_ids, "cancelled")


async def test_a_second_ctrl_c_waits_for_nobody(start, tmp_path, no_tls):
    """Runs are cut at once, answered and kept; the server ends as in good order."""
    async with (
        start("--drain", "600") as (process, url),
        httpx.AsyncClient(verify=no_tls, base_url=url, timeout=20) as client,
    ):
        slow = asyncio.create_task(client.post(URL, json=chat(300)))
        await begun(client, 1)
        process.send_signal(signal.SIGINT)
        told = await process.stderr.readuntil(b"A second Ctrl-C stops at once.")
        process.send_signal(signal.SIGINT)
        answer = await slow
        _, rest = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0
    assert "1 run may end within 600 s" in told.decode()
    assert rest.decode().splitlines()[-1] == "Stopped; every run that began is kept as an episode."
    assert "Traceback" not in rest.decode()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
    store = open_store(tmp_path / "library.db")
    assert [episode.stop_reason for episode in store.select()] == ["cancelled"]
    store.close()


async def test_a_draining_server_takes_nothing_new(make_app, talk, body, store):
    """It is not ready any more, and sends clients elsewhere."""
    app = make_app()
    async with talk(app) as client:
        slow = asyncio.create_task(client.post(URL, json=body('call nap {"seconds": 0.3}')))
        while not len(app.state.runs):
            await asyncio.sleep(0.01)
        draining = asyncio.create_task(app.state.runs.drain(5))
        await asyncio.sleep(0)
        ready = await client.get("/readyz")
        refused = await client.post(URL, json=body("Hi"))
        await draining
        answer = await slow
    assert (ready.status_code, ready.json()["reason"]) == (503, "stopping")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.headers["connection"] == "close"
    assert answer.status_code == 200
    assert len(list(store.select())) == 1


def test_connections_that_come_while_it_stops_are_closed(make_app, served_alone):
    """Whoever connects at that moment is let go of, rather than left without an answer."""
    taken = []

    def connect(address):
        with suppress(OSError):  # it listens no more
            while True:
                taken.append(socket.create_connection(address, timeout=10))

    for _ in range(5):
        with served_alone(make_app()) as url:
            address = ("127.0.0.1", int(url.rpartition(":")[2]))
            connecting = threading.Thread(target=connect, args=[address])
            connecting.start()
        connecting.join()
    assert taken
    for one in taken:
        with one, suppress(ConnectionError):
            assert one.recv(1) == b""
