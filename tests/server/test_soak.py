"""Thousands of requests with mixed faults: nothing is lost, and nothing is left behind."""

import asyncio
import json
import os
import random
from collections import Counter
from dataclasses import dataclass, field

import aiohttp
import psutil
import pytest

from agentkit import Agent, open_store
from agentkit.errors import ModelTimeoutError
from agentkit.server import ServerLimits, create_app
from agentkit.testing import FunctionModel

REQUESTS = int(os.environ.get("AGENTKIT_SOAK_REQUESTS", "2000"))
CLIENTS = 24
KEY = "sk-0123456789abcdef"
PATH = "/v1/chat/completions"
FAULTS = (
    *("whole", "stream", "tool", "session") * 4,
    *("stream that is left", "run that is left", "malformed", "oversize", "wrong key"),
    *("model error", "model defect", "tool error", "slow tool", "wrong path", "refused"),
)


@dataclass
class Tally:
    """What the clients saw."""

    answered: set = field(default_factory=set)
    failed: set = field(default_factory=set)
    statuses: Counter = field(default_factory=Counter)
    left: int = 0


class Client:
    """Sends one request after the other and notes what came back."""

    def __init__(self, url, number, tally):
        self.url, self.number, self.tally = url, number, tally
        self.session = aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"})

    async def send(self, fault):
        """One request with this fault."""
        if fault in {"stream that is left", "run that is left"}:
            await self.leave(fault)
            return
        content, headers = self.body(fault), {"content-type": "application/json"}
        if fault == "wrong key":
            headers["authorization"] = "Bearer sk-wrong-wrong-wrong"
        path = "/v1/nowhere" if fault == "wrong path" else PATH
        async with self.session.post(self.url + path, data=content, headers=headers) as answer:
            text = await answer.text()
        self.note(fault, answer.status, text)

    def body(self, fault):
        """The bytes to send."""
        if fault == "malformed":
            return b'{"model": "agent", "messages": [{"role"'
        words = {
            "tool": 'call add {"a": 1, "b": 2}',
            "tool error": "call broken",
            "slow tool": 'call nap {"seconds": 0.02}',
            "run that is left": 'call nap {"seconds": 20}',
            "late": 'call nap {"seconds": 21}',
            "model error": "time out",
            "model defect": "break",
            "stream that is left": "talk",
        }
        text = (
            "x" * 40_000 if fault == "oversize" else words.get(fault, f"Hello from {self.number}")
        )
        body = {"model": "agent", "messages": [{"role": "user", "content": text}]}
        if fault.startswith("stream") or (fault == "tool error" and self.number % 2):
            body["stream"] = True
        if fault == "session":
            body["session_id"] = f"s{self.number}"
        if fault == "refused":
            body["n"] = 3
        return json.dumps(body).encode()

    async def leave(self, fault):
        """Go away before the answer, or in the middle of it."""
        timeout = aiohttp.ClientTimeout(total=0.05 if fault == "run that is left" else 5)
        headers = {"content-type": "application/json", "connection": "close"}
        try:
            async with self.session.post(
                self.url + PATH, data=self.body(fault), headers=headers, timeout=timeout
            ) as answer:
                await answer.content.readline()
                answer.close()
        except TimeoutError:
            pass
        self.tally.left += 1

    def note(self, fault, status, text):
        """What an answer says about its run."""
        self.tally.statuses[fault, status] += 1
        if status == 200 and "data: [DONE]" in text:
            first = json.loads(text.partition("data: ")[2].partition("\n")[0])
            self.tally.answered.add(first["id"].removeprefix("chatcmpl-"))
        elif status == 200 and "data: " not in text:
            self.tally.answered.add(json.loads(text)["id"].removeprefix("chatcmpl-"))
        elif "episode_id" in (error := json.loads(text.split("data: ")[-1])["error"]):
            self.tally.failed.add(error["episode_id"])


def model(follow_orders, seen):
    """Follows orders, and fails on some of them."""

    class Model(FunctionModel):
        """Talks without end when told so."""

        async def stream(self, request):
            from agentkit.models.base import TextDelta

            while request.messages[-1].text == "talk":
                yield TextDelta(text="and ")
                await asyncio.sleep(0.002)
            async for event in super().stream(request):
                yield event

    def answer(request):
        seen["loop"] = asyncio.get_running_loop()
        match request.messages[-1].text:
            case "time out":
                raise ModelTimeoutError("the model is slow")
            case "break":
                raise KeyError("a defect")
            case _:
                return follow_orders(request)

    return Model(answer)


@pytest.fixture
def orders():
    """The model's function and the tools of the other tests."""
    import sys

    conftest = sys.modules["tests.server.conftest"]
    return conftest.follow_orders, conftest.TOOLS


async def test_nothing_is_lost(served_alone, keys, tmp_path, orders):
    """As many episodes as runs began; every id that a client read is one of them."""
    follow_orders, tools = orders
    seen, tally = {}, Tally()
    store = open_store(tmp_path / "soak.db")
    agent = Agent(model(follow_orders, seen), tools=tools, store=store)
    limits = ServerLimits(max_body_bytes=20_000, request_seconds=2, max_concurrent=4 * CLIENTS)
    app = create_app(agent, keys=keys, limits=limits, model_name="agent")
    plan = [FAULTS[at % len(FAULTS)] for at in range(REQUESTS)]
    random.Random(7).shuffle(plan)
    plan = ["late"] * (CLIENTS // 2) + plan
    with served_alone(app) as url:
        clients = [Client(url, number, tally) for number in range(CLIENTS)]
        await clients[0].send("whole")
        tasks_before = len(asyncio.all_tasks(seen["loop"]))
        await asyncio.gather(
            *(send_all(client, plan[client.number :: CLIENTS]) for client in clients)
        )
        for client in clients:
            await client.session.close()
        while len(app.state.runs) or connections(url):
            await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks(seen["loop"])) <= tasks_before
        metrics = await scraped(url)
    kept = {episode.episode_id: episode.stop_reason for episode in store.select()}
    store.close()
    expect_statuses(tally.statuses)
    assert len(kept) == metrics["agentkit_runs_started_total"]
    assert len(kept) == metrics["agentkit_episodes_kept_total"]
    assert len(kept) == len(tally.answered) + len(tally.failed) + tally.left
    assert tally.answered | tally.failed <= kept.keys()
    assert all(kept[one] == "finished" for one in tally.answered)
    assert all(kept[one] in {"error", "cancelled"} for one in tally.failed)
    rest = kept.keys() - tally.answered - tally.failed
    assert {kept[one] for one in rest} == {"cancelled"}


async def send_all(client, plan):
    """One after the other."""
    for fault in plan:
        await client.send(fault)


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


def expect_statuses(statuses):
    """Each fault has its answer, every time."""
    wanted = {
        "malformed": 400,
        "oversize": 413,
        "wrong key": 401,
        "wrong path": 404,
        "refused": 400,
        "model error": 504,
        "model defect": 500,
        "late": 504,
    }
    found = {}
    for fault, status in statuses:
        found.setdefault(fault, set()).add(status)
    assert found == {fault: {wanted.get(fault, 200)} for fault in found}
    assert len(found) == len({*FAULTS, "late"}) - 2
