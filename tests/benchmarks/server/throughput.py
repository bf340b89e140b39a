"""How many requests a second one server process answers, with a model that takes no time (docs/serve.md).

    python tests/benchmarks/server/throughput.py [--requests 5000] [--clients 16] [--store sqlite]

The server runs in a process of its own, the client in this one, over loopback. Each request is a
run of an agent that keeps its episode. The client writes HTTP by hand, so that little of the two
cores is spent on it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, percentile, report

from agentkit import Agent, open_store, tool
from agentkit.messages import ToolCall
from agentkit.server import Keys, ServerLimits, create_app, serve
from agentkit.testing import FunctionModel

KEY = "sk-0123456789abcdef"
WARM_UP = 200
CALL = ToolCall(call_id="c1", name="add", arguments={"a": 1, "b": 2})
STORES, KINDS = ("none", "memory", "sqlite"), ("answer", "stream", "tool call")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Forgetful(list[Any]):
    """The list of requests of the model's double, which would grow for ever."""

    def append(self, item: object) -> None:
        """Forget it."""


def run_server(store_url: str) -> None:
    """The process of the server."""

    def answer(request: Any) -> Any:
        last = request.messages[-1]
        calls = last.role == "user" and last.text.startswith("add")
        return [CALL] if calls else "The answer to your question is three."

    model = FunctionModel(answer)
    model.requests = Forgetful()
    agent = Agent(model, tools=[add], store=None if store_url == "none" else open_store(store_url))
    app = create_app(agent, keys=Keys({"bench": KEY}), limits=ServerLimits(max_concurrent=512))
    serve(app, port=0, on_start=lambda url: print(url, flush=True))


def measured(store: str, kind: str, count: int, clients: int) -> dict[str, Any]:
    """Start a server, send the requests, stop it, and see that each has its episode."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "episodes.db")
        url = {"sqlite": path, "memory": "memory:"}.get(store, "none")
        command = [sys.executable, __file__, "--serve", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            base = server.stdout.readline().strip()
            asyncio.run(load(base, kind, WARM_UP, clients))
            cpu, began = cpu_seconds(server.pid), time.perf_counter()
            each = asyncio.run(load(base, kind, count, clients))
            seconds, cpu = time.perf_counter() - began, cpu_seconds(server.pid) - cpu
            server.terminate()
            assert server.wait() == 0
        if store == "sqlite":
            episodes = open_store(url)
            assert sum(1 for _ in episodes.select()) == count + WARM_UP
            episodes.close()
    return {
        "store": store,
        "request": kind,
        "requests/s": count / seconds,
        **{f"p{share} ms": percentile(each, share / 100) * 1000 for share in (50, 95, 99)},
        "server CPU ms": cpu / count * 1000,
    }


def cpu_seconds(pid: int) -> float:
    """The processor time of a process, where the system tells it in /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(base: str, kind: str, count: int, clients: int) -> list[float]:
    """Send the requests, so many clients at a time; seconds of each."""
    left, each = iter(range(count)), list[float]()
    await asyncio.gather(*(client(base, kind, left, each) for _ in range(clients)))
    assert len(each) == count
    return each


async def client(base: str, kind: str, left: Iterator[int], each: list[float]) -> None:
    """One connection that sends one request after the other."""
    host, _, port = base.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    text = "add 1 and 2" if kind == "tool call" else "What is one and two?"
    body = {"model": "agent", "messages": [{"role": "user", "content": text}]}
    content = json.dumps({**body, "stream": kind == "stream"}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    for _ in left:
        began = time.perf_counter()
        writer.write(head.encode() + content)
        await answered(reader)
        each.append(time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()


async def answered(reader: asyncio.StreamReader) -> None:
    """Read one whole answer, which has to be a good one."""
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    if b"chunked" in head.lower():
        assert (await reader.readuntil(b"0\r\n\r\n")).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        return
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        run_server(options.serve)
    else:
        rows = [
            measured(store, kind, options.requests, options.clients)
            for store in options.store or STORES
            for kind in options.kind or KINDS
        ]
        report(rows, options)
