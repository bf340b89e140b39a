"""How many requests a second one server process answers, with a model that takes no time.

The server runs in a process of its own, the client in this one, over loopback. Each request is a
run of an agent that keeps its episode. The client writes HTTP by hand, so that little of the two
cores is spent on it; ``--sdk`` uses the openai SDK instead, whose own cost then counts.

    python tests/benchmarks/server/throughput.py
    python tests/benchmarks/server/throughput.py --requests 20000 --clients 32 --store sqlite
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from agentkit import Agent, open_store, tool
from agentkit.messages import ToolCall
from agentkit.server import Keys, ServerLimits, create_app, serve
from agentkit.testing import FunctionModel

KEY = "sk-0123456789abcdef"
PATH = "/v1/chat/completions"
CALL = ToolCall(call_id="c1", name="add", arguments={"a": 1, "b": 2})


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main() -> None:
    """Measure each kind of request with each store, and print a row for each."""
    options = parsed()
    if options.serve:
        run_server(options.serve)
        return
    print(f"# {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        "| store | request | clients | requests/s | median ms | p95 ms | p99 ms | server CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for store in options.store or ("none", "memory", "sqlite"):
        for kind in options.kind or ("answer", "stream", "tool call"):
            with tempfile.TemporaryDirectory() as folder:
                print(row(store, kind, measured(store, kind, Path(folder), options), options))


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--store", action="append", choices=["none", "memory", "sqlite"])
    parser.add_argument("--kind", action="append", choices=["answer", "stream", "tool call"])
    parser.add_argument("--sdk", action="store_true", help="send with the openai SDK")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_server(store_url: str) -> None:
    """The process of the server."""

    def answer(request: object) -> object:
        last = request.messages[-1]
        calls = last.role == "user" and last.text.startswith("add")
        return [CALL] if calls else "The answer to your question is three."

    store = None if store_url == "none" else open_store(store_url)
    model = FunctionModel(answer)
    model.requests = Forgetful()
    agent = Agent(model, tools=[add], store=store)
    app = create_app(agent, keys=Keys({"bench": KEY}), limits=ServerLimits(max_concurrent=512))
    serve(app, port=0, on_start=lambda url: print(url, flush=True))


class Forgetful(list):
    """The list of requests of the model's double, which would grow for ever."""

    def append(self, item: object) -> None:
        """Forget it."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one measurement gave: seconds in all, of each request, and of the server's CPU."""

    wall: float
    each: list[float]
    cpu: float


def measured(store: str, kind: str, folder: Path, options: argparse.Namespace) -> Measurement:
    """Start a server, send the requests, stop it, and see that each has its episode."""
    url = {"sqlite": str(folder / "episodes.db"), "memory": "memory:"}.get(store, "none")
    command = [sys.executable, __file__, "--serve", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        base = server.stdout.readline().strip()
        warm = argparse.Namespace(**{**vars(options), "requests": 200})
        asyncio.run(load(base, kind, warm))
        cpu = cpu_seconds(server.pid)
        began = time.perf_counter()
        each = asyncio.run(load(base, kind, options))
        wall = time.perf_counter() - began
        cpu = cpu_seconds(server.pid) - cpu
        server.terminate()
        assert server.wait() == 0
    if store == "sqlite":
        episodes = open_store(url)
        kept = sum(1 for _ in episodes.select())
        episodes.close()
        assert kept == options.requests + 200, f"{kept} episodes"
    return Measurement(wall=wall, each=each, cpu=cpu)


def cpu_seconds(pid: int) -> float:
    """The processor time of a process, where the system tells it in /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(base: str, kind: str, options: argparse.Namespace) -> list[float]:
    """Send the requests, ``clients`` at a time; seconds of each."""
    left = iter(range(options.requests))
    client = sdk_client if options.sdk else raw_client
    each: list[float] = []
    await asyncio.gather(*(client(base, kind, left, each) for _ in range(options.clients)))
    assert len(each) == options.requests
    return each


async def raw_client(base: str, kind: str, left: object, each: list[float]) -> None:
    """One connection that sends one request after the other."""
    host, _, port = base.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps(body(kind)).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    request = head.encode() + content
    for _ in left:
        began = time.perf_counter()
        writer.write(request)
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


async def sdk_client(base: str, kind: str, left: object, each: list[float]) -> None:
    """The openai SDK, one request after the other."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0) as client:
        for _ in left:
            began = time.perf_counter()
            answer = await client.chat.completions.create(**body(kind))
            if kind == "stream":
                async for _chunk in answer:
                    pass
            each.append(time.perf_counter() - began)


def body(kind: str) -> dict[str, object]:
    """A request."""
    text = "add 1 and 2" if kind == "tool call" else "What is one and two?"
    fields: dict[str, object] = {"stream": True} if kind == "stream" else {}
    return {"model": "agent", "messages": [{"role": "user", "content": text}], **fields}


def row(store: str, kind: str, got: Measurement, options: argparse.Namespace) -> str:
    """A line of the table."""
    each = sorted(seconds * 1000 for seconds in got.each)
    cuts = statistics.quantiles(each, n=100)
    cells = [
        store,
        kind,
        options.clients,
        f"{options.requests / got.wall:.0f}",
        f"{cuts[49]:.1f}",
        f"{cuts[94]:.1f}",
        f"{cuts[98]:.1f}",
        f"{got.cpu / options.requests * 1000:.2f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
