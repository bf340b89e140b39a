"""What surrounds the server in a soak: its users, its model and whoever watches it.

Each is a function for a process of its own, so that none of them waits for another.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import aiohttp
from support.model_server import ProviderServer
from support.server_steps import (
    ErrorStatus,
    HalfStream,
    RawReply,
    ReceivedRequest,
    Reply,
    Reset,
    Stall,
    Step,
)

from agentkit.messages import ToolCall

KEY = "sk-0123456789abcdef"
CHAT = "/v1/chat/completions"
MOST_BYTES = 2_000_000
"""The longest body that the server takes."""

WELL, FAILING = 0, 1
"""How the model does."""

_PATIENCE_SECONDS = 60.0
_TURNS_OF_A_SESSION = 8


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of request; see ``KINDS``.

    Attributes:
        share: How often it is sent, compared with the others.
        tickets: How many effects it asks for.
        stream: Whether the answer is to be streamed.
        leaves: Whether its client hangs up while the answer is made.
        session: Whether the server keeps the conversation.
        text: What the user says, where no ticket is wanted.
        status: Of the answer when all is well; where it is not 200, no run begins.
        cut: Bytes of the body that are missing.
        key: What the client shows.
        path: Where it is sent.
        fields: Further fields of the body.
    """

    share: int
    tickets: int = 0
    stream: bool = False
    leaves: bool = False
    session: bool = False
    text: str = "say something"
    status: int = 200
    cut: int = 0
    key: str = KEY
    path: str = CHAT
    fields: Mapping[str, object] = field(default_factory=dict)


KINDS = {
    "answer": Kind(share=3),
    "stream": Kind(share=3, stream=True),
    "tool": Kind(share=6, tickets=1),
    "streamed tool": Kind(share=5, tickets=1, stream=True),
    "two tools": Kind(share=2, tickets=2),
    "session": Kind(share=3, tickets=1, session=True),
    "tool, left": Kind(share=3, tickets=1, leaves=True),
    "streamed tool, left": Kind(share=3, tickets=1, stream=True, leaves=True),
    "tool that fails": Kind(share=1, text="fail"),
    "malformed": Kind(share=1, status=400, cut=9),
    "refused": Kind(share=1, status=400, fields={"n": 3}),
    "oversize": Kind(share=1, status=413, text="x" * MOST_BYTES),
    "wrong key": Kind(share=1, status=401, key="sk-of-somebody-else"),
    "wrong path": Kind(share=1, status=404, path="/v1/nowhere"),
}


def use(url: str, users: int, think: float, stop: Synchronized[int], replies: Path) -> None:
    """Be so many users, who send one request after the other, until told to stop.

    Each reply becomes a line of ``replies``.
    """

    async def together() -> None:
        with replies.open("w", buffering=1, encoding="utf-8") as file:
            connector = aiohttp.TCPConnector(limit=0, force_close=False)
            async with aiohttp.ClientSession(connector=connector) as session:
                each = (User(url, number, session, file.write) for number in range(users))
                await asyncio.gather(*(user.send_all(think, stop) for user in each))

    asyncio.run(together())


class User:
    """Sends one request after the other; the id of a request is that of its first ticket."""

    def __init__(self, url: str, number: int, session: aiohttp.ClientSession, write) -> None:
        self._url, self._number, self._session, self._write = url, number, session, write
        self._random = random.Random(number)
        self._sent = 0

    async def send_all(self, think: float, stop: Synchronized[int]) -> None:
        """Think, ask, note the reply."""
        names, shares = list(KINDS), [kind.share for kind in KINDS.values()]
        while not stop.value:
            await asyncio.sleep(self._random.uniform(0, 2 * think))
            (name,) = self._random.choices(names, shares)
            began = time.time()
            request_id = f"u{self._number}-{self._sent}"
            tickets = [request_id, *(f"{request_id}+" for _ in range(KINDS[name].tickets - 1))]
            reply = {"id": request_id, "kind": name, "began": began, "status": 0, "code": ""}
            reply["tickets"] = tickets[: KINDS[name].tickets]
            try:
                reply |= await self._ask(KINDS[name], request_id, reply["tickets"])
            except TimeoutError:
                reply["code"] = "left" if KINDS[name].leaves else "impatient"
            except (aiohttp.ClientError, OSError) as error:
                refused = isinstance(error, aiohttp.ClientConnectorError)
                reply["code"] = "refused" if refused else "cut"
            self._write(json.dumps(reply | {"ended": time.time()}) + "\n")
            self._sent += 1

    async def _ask(self, kind: Kind, request_id: str, tickets: list[str]) -> dict:
        text = f"book {' '.join(tickets)}" if tickets else kind.text
        fields = {"model": "agent", "messages": [{"role": "user", "content": text}], **kind.fields}
        body = json.dumps(fields | ({"stream": True} if kind.stream else {})).encode()
        headers = {
            "authorization": f"Bearer {kind.key}",
            "content-type": "application/json",
            "x-request-id": request_id,
        }
        if kind.session:
            of_session = self._sent // (_TURNS_OF_A_SESSION * len(KINDS))
            headers["x-session-id"] = f"s{self._number}-{of_session}"
        wait = self._random.uniform(0.005, 0.3) if kind.leaves else _PATIENCE_SECONDS
        async with self._session.post(
            self._url + kind.path,
            data=body[: len(body) - kind.cut],
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=wait),
        ) as answer:
            return read(answer.status, await answer.text()) | {
                "retry_after": answer.headers.get("retry-after")
            }


def read(status: int, text: str) -> dict:
    """What an answer says, whole or streamed: its episode, and whether all of it came."""
    streamed = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    parts = [json.loads(part) for part in streamed or [text] if part.startswith("{")]
    error = parts[-1].get("error") if parts else {"code": "no answer"}
    if error:
        said = {"code": error["code"], "episode": error.get("episode_id")}
        said["is_kept"] = error.get("episode_kept", True)
        return {"status": status, "whole": False, **said}
    whole = streamed[-1] == "[DONE]" if streamed else "choices" in parts[0]
    episode = parts[0]["id"].removeprefix("chatcmpl-")
    # while the store takes no episodes, tools that write are not run, and the answer says so
    choices = [choice for part in parts for choice in part.get("choices", ())]
    said = [(one.get("message") or one["delta"]).get("content") or "" for one in choices]
    refused = "the store takes no episodes" in "".join(said)
    return {"status": status, "whole": whole, "episode": episode, "is_refused": refused}


def answer_as_a_model(told: Connection, health: Synchronized[int]) -> None:
    """Be a model that does what the last user message says; ``told`` gets the URL.

    It books the tickets that the message names, and then says what came of it.
    """
    draw = random.Random(11)

    def step(request: ReceivedRequest) -> Step:
        messages = request.body["messages"]
        if health.value == FAILING and draw.random() < 0.9:
            return draw.choice(failures(streams=bool(request.body.get("stream"))))
        order, *tickets = _text(messages[-1]).split()
        seconds = draw.uniform(0.005, 0.06)
        if messages[-1]["role"] == "user" and order == "book":
            calls = [
                ToolCall(
                    call_id=f"c{at}",
                    name="book",
                    arguments={"ticket": ticket, "seconds": round(draw.uniform(0, 0.1), 3)},
                )
                for at, ticket in enumerate(tickets)
            ]
            return Reply(tool_calls=calls, seconds=seconds)
        if messages[-1]["role"] == "user" and order == "fail":
            return Reply(tool_calls=[ToolCall(call_id="c0", name="fail")], seconds=seconds)
        return Reply(text=f"This is what I have to say: {_text(messages[-1])}.", seconds=seconds)

    with ProviderServer(step) as server:
        server.requests = Forgetful()
        told.send(server.base_url)
        with suppress(EOFError):
            told.recv()


class Forgetful(list):
    """The list of requests of the model's double, which would grow for ever."""

    def append(self, item: object) -> None:
        """Forget it."""


def failures(*, streams: bool) -> list[Step]:
    """How a model fails: with errors, by hanging, with half an answer."""
    half = HalfStream(events=2) if streams else Reset(after_bytes=150)
    return [
        *(ErrorStatus(status=500), ErrorStatus(status=503), ErrorStatus(status=400)),
        *(Reset(), half, half, RawReply(body="<html>"), Stall(), Stall(after_bytes=100)),
    ]


def _text(message: dict) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def watch(url: str, pid: Synchronized[int], stop: Synchronized[int], to: Path) -> None:
    """Ask for ``/healthz`` 20 times a second, and for the rest of what a server says of itself.

    What was heard becomes lines of ``to``: the path, when, how long it took, the status, and how
    long the server could have run meanwhile but had no core.
    """
    with suppress(OSError):
        os.nice(-10)  # what is measured is the server, and not who measures
    lock = threading.Lock()
    with to.open("w", buffering=1, encoding="utf-8") as file:

        def ask(path: str, every: float) -> None:
            while not stop.value:
                began, before = time.time(), Processor.of(pid.value)
                status, _ = asked(url, path)
                seconds, after = time.time() - began, Processor.of(pid.value)
                found = {"path": path, "began": began, "seconds": seconds, "status": status}
                found["no_core"] = after.waited_since(before)
                with lock:
                    file.write(json.dumps(found) + "\n")
                time.sleep(max(0.0, every - seconds))

        asking = [
            threading.Thread(target=ask, args=("/healthz", 0.05)),
            threading.Thread(target=ask, args=("/readyz", 0.2)),
            threading.Thread(target=ask, args=("/metrics", 1.0)),
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()


def asked(url: str, path: str) -> tuple[int, str]:
    """The status and the body; 0 where nobody answers."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request("GET", path, headers={"authorization": f"Bearer {KEY}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, type(error).__name__
    finally:
        connection.close()


@dataclass(frozen=True, kw_only=True)
class Processor:
    """What a process lacked of the processor until now, where the system says so (Linux).

    Attributes:
        waited: Seconds that each thread could have run but had no core.
    """

    waited: Mapping[str, float]

    @classmethod
    def of(cls, pid: int) -> Processor:
        """That of a process; nothing for one that is gone."""
        waited = {}
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                waited[path.parent.name] = int(path.read_text(encoding="ascii").split()[1]) / 1e9
        return cls(waited=waited)

    def waited_since(self, earlier: Processor) -> float:
        """The longest that one thread waited: it may have held what the others needed."""
        waits = (after - earlier.waited.get(name, 0.0) for name, after in self.waited.items())
        return max(waits, default=0.0)
