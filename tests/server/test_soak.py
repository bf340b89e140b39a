"""Thousands of requests with mixed faults: nothing is lost, and nothing is left behind.

Each request has an id of its own that its episode carries, so that both can be laid side by side.
"""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import aiohttp
import psutil

from agentkit import Agent, open_store
from agentkit.errors import ModelTimeoutError, StoreError
from agentkit.models.base import TextDelta
from agentkit.server import ServerLimits, create_app
from agentkit.testing import FunctionModel
from agentkit.testing.unreliable_store import UnreliableStore

REQUESTS = int(os.environ.get("AGENTKIT_SOAK_REQUESTS", "2000"))
CLIENTS = 24
KEY = "sk-0123456789abcdef"
PATH = "/v1/chat/completions"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of request: what it says, and how it ends when the store takes everything."""

    text: str = "Hello"
    status: int = 200
    ends: str = "finished"
    fields: dict = field(default_factory=dict)
    body: bytes | None = None
    path: str = PATH
    key: str = KEY
    patience: float | None = None


STREAM = {"stream": True}
COMMON = {
    "whole": Kind(),
    "stream": Kind(fields=STREAM),
    "tool": Kind(text='call add {"a": 1, "b": 2}'),
    "session": Kind(fields={"session_id": "of this client"}),
}
FAULTS = {
    "stream that is left": Kind(text="talk", fields=STREAM, patience=5, ends="cancelled"),
    "run that is left": Kind(text='call nap {"seconds": 20}', patience=0.05, ends="cancelled"),
    "malformed": Kind(body=b'{"model": "agent", "messages": [{"role"', status=400, ends=""),
    "oversize": Kind(text="x" * 40_000, status=413, ends=""),
    "wrong key": Kind(key="sk-wrong-wrong-wrong", status=401, ends=""),
    "wrong path": Kind(path="/v1/nowhere", status=404, ends=""),
    "refused": Kind(fields={"n": 3}, status=400, ends=""),
    "model error": Kind(text="time out", status=504, ends="error"),
    "model error in mid-stream": Kind(text="talk, then time out", fields=STREAM, ends="error"),
    "model defect": Kind(text="break", status=500, ends="error"),
    "tool error": Kind(text="call broken"),
    "streamed tool error": Kind(text="call broken", fields=STREAM),
    "slow tool": Kind(text='call nap {"seconds": 0.02}'),
}
SLOW = {
    "tool that hangs": Kind(text='call nap {"seconds": 600}', status=504, ends="cancelled"),
    "model that hangs": Kind(text="hang", status=504, ends="cancelled"),
    "stream that hangs": Kind(text="hang", status=504, ends="cancelled", fields=STREAM),
}
KINDS = COMMON | FAULTS | SLOW


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a client read: the status, the episode's id, and whether the answer was a good one."""

    kind: str
    status: int = 0
    episode_id: str | None = None
    is_good: bool = False
    code: str = ""


class Client:
    """Sends one request after the other and notes what came back, by the id of the request."""

    def __init__(self, url, number):
        self.url, self.number, self.replies = url, number, {}
        self.session = aiohttp.ClientSession()

    async def send(self, name):
        """One request of this kind."""
        kind, request_id = KINDS[name], f"{self.number}.{len(self.replies)}"
        headers = {
            "authorization": f"Bearer {kind.key}",
            "content-type": "application/json",
            "x-request-id": request_id,
            **({"connection": "close"} if kind.patience else {}),
        }
        timeout = aiohttp.ClientTimeout(total=kind.patience or 60)
        self.replies[request_id] = Reply(kind=name)  # until there is another
        try:
            async with self.session.post(
                self.url + kind.path, data=self.body(kind), headers=headers, timeout=timeout
            ) as answer:
                if kind.patience:
                    await answer.content.readline()
                    answer.close()
                    return
                self.replies[request_id] = read(name, answer.status, await answer.text())
        except TimeoutError:
            assert kind.patience, f"no answer to {name}"

    def body(self, kind):
        """The bytes to send."""
        message = {"role": "user", "content": kind.text}
        fields = {"model": "agent", "messages": [message], **kind.fields}
        if "session_id" in fields:
            fields["session_id"] = f"s{self.number}"
        return json.dumps(fields).encode() if kind.body is None else kind.body

    async def send_all(self, names):
        """One after the other, as long as the server takes them."""
        try:
            for name in names:
                await self.send(name)
        except aiohttp.ClientError:  # it was told to stop
            return


def read(name, status, text):
    """An answer, whole or streamed, good or not."""
    told = [json.loads(part) for part in text.split("data: ") if part.startswith("{")]
    if "error" in told[-1]:
        error = told[-1]["error"]
        return Reply(
            kind=name, status=status, episode_id=error.get("episode_id"), code=error["code"]
        )
    good = "data: [DONE]" in text or "data: " not in text
    episode_id = told[0]["id"].removeprefix("chatcmpl-")
    return Reply(kind=name, status=status, episode_id=episode_id, is_good=good)


class Model(FunctionModel):
    """Follows orders, and fails on some of them; tells its event loop."""

    def __init__(self):
        follow_orders = sys.modules["tests.server.conftest"].follow_orders

        async def answer(request):
            self.loop = asyncio.get_running_loop()
            match request.messages[-1].text:
                case "time out":
                    raise ModelTimeoutError("the model is slow")
                case "break":
                    raise KeyError("a defect")
                case "hang":
                    await asyncio.Event().wait()
            return follow_orders(request)

        super().__init__(answer)

    async def stream(self, request):
        text = request.messages[-1].text
        while text == "talk":
            yield TextDelta(text="and ")
            await asyncio.sleep(0.002)
        if text == "talk, then time out":
            yield TextDelta(text="and ")
            raise ModelTimeoutError("the model is slow")
        async for event in super().stream(request):
            yield event


class Disk(UnreliableStore):
    """A store that takes no episode while its disk is full."""

    is_full = False

    def append_many(self, episodes):
        """Keep them, or say why not."""
        if self.is_full:
            raise StoreError("the disk is full")
        super().append_many(episodes)


def planned(requests):
    """So many requests in an order that is always the same, and for each client a slow one."""
    names = [*(list(COMMON) * 4), *FAULTS]
    plan = [names[at % len(names)] for at in range(requests)]
    random.Random(7).shuffle(plan)
    return [list(SLOW)[at % len(SLOW)] for at in range(CLIENTS)] + plan


def agent_app(disk, keys, **limits):
    """An agent with that disk, and its application."""
    tools = sys.modules["tests.server.conftest"].TOOLS
    model = Model()
    limits = {"max_body_bytes": 20_000, "max_concurrent": 4 * CLIENTS, **limits}
    agent = Agent(model, tools=tools, store=disk)
    app = create_app(agent, keys=keys, limits=ServerLimits(**limits), model_name="agent")
    return model, app


async def test_nothing_is_lost(served_alone, keys, tmp_path):
    """Each run that began is kept or was refused by a full disk; each answer is that of one run."""
    store = open_store(tmp_path / "soak.db")
    disk = Disk(store)
    model, app = agent_app(disk, keys, request_seconds=2)
    plan = planned(REQUESTS)
    with served_alone(app) as url:
        clients = [Client(url, number) for number in range(CLIENTS)]
        await clients[0].send("whole")
        tasks_before = len(asyncio.all_tasks(model.loop))
        third = len(plan) // 3
        for part in (plan[:third], plan[third : third + 200], plan[third + 200 :]):
            disk.is_full = len(part) == 200
            await asyncio.gather(*(one.send_all(part[one.number :: CLIENTS]) for one in clients))
            while len(app.state.runs):
                await asyncio.sleep(0.01)
        for client in clients:
            await client.session.close()
        while connections(url):
            await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks(model.loop)) <= tasks_before
        metrics = await scraped(url)
    kept = list(store.select())
    store.close()
    replies = {request: reply for one in clients for request, reply in one.replies.items()}
    assert len(replies) == len(plan) + 1
    expect_an_episode_for_each_run(kept, metrics)
    expect_answers_of_episodes(replies, kept)
    expect_statuses(replies.values())


async def test_nothing_is_lost_when_the_server_stops_under_load(served_alone, keys, tmp_path):
    """Runs that are cut are kept; no client has a good answer that the store has not."""
    store = open_store(tmp_path / "soak.db")
    _, app = agent_app(Disk(store), keys, drain_seconds=0.2)
    plans = [[name] for name in SLOW] + [planned(REQUESTS)[CLIENTS:]] * CLIENTS
    with ExitStack() as server:
        url = server.enter_context(served_alone(app))
        clients = [Client(url, number) for number in range(len(plans))]
        sending = [
            asyncio.create_task(
                one.send_all(plan[one.number :] if one.number > len(SLOW) else plan)
            )
            for one, plan in zip(clients, plans, strict=True)
        ]
        while sum(len(one.replies) for one in clients) < 10 * CLIENTS:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.close)
    await asyncio.gather(*sending)
    for client in clients:
        await client.session.close()
    kept = list(store.select())
    store.close()
    replies = {request: reply for one in clients for request, reply in one.replies.items()}
    expect_answers_of_episodes(replies, kept)
    cut = {
        reply.kind for reply in replies.values() if reply.code == "stopping" and reply.episode_id
    }
    assert cut >= SLOW.keys()


def connections(url):
    """How many connections to the server are open in this process."""
    port = int(url.rpartition(":")[2])
    found = psutil.Process().net_connections("tcp")
    return sum(one.laddr.port == port and one.status == "ESTABLISHED" for one in found)


async def scraped(url):
    """The numbers without labels."""
    headers = {"authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{url}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    pairs = (line.split(" ") for line in lines if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in pairs}


def expect_an_episode_for_each_run(kept, metrics):
    """What the server counted is what the store has; the full disk was met, and lost nothing."""
    assert metrics["agentkit_episodes_not_kept_total"] > 0
    assert metrics["agentkit_episodes_waiting"] == 0
    assert len(kept) == metrics["agentkit_episodes_kept_total"]
    assert len(kept) == metrics["agentkit_runs_started_total"]


def expect_answers_of_episodes(replies, kept):
    """Each request has the episode that its client was told of, ended as it should, and no other."""
    episodes = {episode.metadata["request_id"]: episode for episode in kept}
    assert len(episodes) == len(kept), "a request ran twice"
    assert episodes.keys() <= replies.keys()
    for request, reply in replies.items():
        expect_episode_of(reply, episodes.get(request))


def expect_episode_of(reply, episode):
    """The episode fits what the client read."""
    ended = episode.stop_reason if episode else ""
    if not reply.status:  # the client left, maybe before its run began
        assert ended in {"", "cancelled"}, reply
    elif reply.code == "stopping":  # maybe after its end, while it was being kept
        cut = {"cancelled", KINDS[reply.kind].ends}
        assert ended in (cut if reply.episode_id else {""}), reply
    elif reply.code != "store_unavailable":
        assert ended == KINDS[reply.kind].ends, reply
        assert reply.is_good == (ended == "finished"), reply
        assert reply.episode_id == (episode.episode_id if episode else None), reply


def expect_statuses(replies):
    """Each kind has its answer, every time, but for the time of the full disk."""
    found = Counter(
        (reply.kind, reply.status) for reply in replies if not reply.code.startswith("store")
    )
    wanted = {(name, 0 if kind.patience else kind.status) for name, kind in KINDS.items()}
    assert found.keys() == wanted
