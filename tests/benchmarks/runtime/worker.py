"""One measurement inside the environment of one adapter; called by ``overhead.py``.

    python worker.py ADAPTER PART OPTIONS        one line of JSON, after a mark

Standard library only, so that it runs wherever an adapter does.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Self

MARK = "@@RESULT "
QUESTION = "What is the weather in Paris for the next 3 days?"
WARM_UP = 10
TOOL = '''
def tool_{i}(city: str, days: int, unit: str = "metric", detailed: bool = False) -> str:
    """Get the forecast report number {i} for a city.

    Returns a short text report that names the city and the number of days.

    Args:
        city: Name of the city, in English.
        days: Number of days ahead, from 1 to 14.
        unit: Unit system, metric or imperial.
        detailed: Whether to add hourly values.
    """
    return f"STUBRES {{city}} {{days}} sunny"
'''


def make_tools(options: dict[str, Any]) -> list[Callable[..., Any]]:
    """Distinct documented functions in a real file, because some runtimes read the source."""
    source = "".join(TOOL.format(i=i) for i in range(options["tools"]))
    Path(options["folder"], "bench_tools.py").write_text(source, encoding="utf-8")
    sys.path.insert(0, options["folder"])
    module = importlib.import_module("bench_tools")
    return [getattr(module, f"tool_{i}") for i in range(options["tools"])]


class Clock:
    """Wall and CPU time of a stretch, in milliseconds; ``process_time`` counts every thread."""

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = (time.perf_counter() - self._wall) * 1e3
        self.cpu = (time.process_time() - self._cpu) * 1e3


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def runs(adapter: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """Construction, first run, and run after run, one at a time."""
    tools = make_tools(options)
    with Clock() as build:
        agent = adapter.build(options["url"], tools)
    with Clock() as first:
        answer = await adapter.run(agent, QUESTION)
    check(answer)
    for _ in range(WARM_UP):
        await adapter.run(agent, QUESTION)
    clocks = [Clock() for _ in range(options["runs"])]
    for clock in clocks:
        with clock:
            await adapter.run(agent, QUESTION)
    return {
        "build_ms": build.wall,
        "first_ms": first.wall,
        "first_cpu_ms": first.cpu,
        "wall_ms": statistics.median(clock.wall for clock in clocks),
        "cpu_ms": statistics.median(clock.cpu for clock in clocks),
        "peak_mb": peak_mb(),
    }


async def throughput(adapter: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """Many runs at once on one event loop."""
    agent = adapter.build(options["url"], make_tools(options))
    await asyncio.gather(*(adapter.run(agent, QUESTION) for _ in range(WARM_UP)))
    gc.collect()
    slots = asyncio.Semaphore(options["concurrency"])

    async def one() -> None:
        async with slots:
            check(await adapter.run(agent, QUESTION))

    with Clock() as clock:
        await asyncio.gather(*(one() for _ in range(options["runs"])))
    return {
        "runs_per_s": options["runs"] / clock.wall * 1e3,
        "cpu_ms": clock.cpu / options["runs"],
        "peak_mb": peak_mb(),
    }


async def stream(adapter: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """Streamed runs, one at a time: time to the first piece of text, and CPU for the whole."""
    agent = adapter.build(options["url"], make_tools(options))
    first_ms, cpu_ms = [], []
    for _ in range(WARM_UP + options["runs"]):
        pieces = []
        with Clock() as whole:
            started = time.perf_counter()
            async for piece in adapter.stream(agent, QUESTION):
                if not pieces:
                    first_ms.append((time.perf_counter() - started) * 1e3)
                pieces.append(piece)
        check("".join(pieces))
        cpu_ms.append(whole.cpu)
    return {
        "first_text_ms": statistics.median(first_ms[WARM_UP:]),
        "cpu_ms": statistics.median(cpu_ms[WARM_UP:]),
    }


def check(answer: str) -> None:
    """A runtime that does not get to the answer is not measured."""
    if not answer.startswith("done"):
        raise SystemExit(f"wrong answer: {answer[:200]!r}")


async def install(adapter: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """Size on disk of the first distribution and all that it requires, numpy apart."""
    names = set(closure(adapter.DISTS[0], set()))
    sizes = {name: size_mb(name) for name in names}
    return {
        "mb": sum(sizes.values()) - sizes.get("numpy", 0.0),
        "packages": len(names),
        "largest": dict(sorted(sizes.items(), key=lambda item: -item[1])[:6]),
        "versions": {name: metadata.version(name) for name in adapter.DISTS},
    }


def closure(name: str, seen: set[str]) -> Iterator[str]:
    """Names of a distribution and of everything that it requires here, extras left out."""
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name

    key = str(canonicalize_name(name))
    if key in seen:
        return
    seen.add(key)
    yield key
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from closure(requirement.name, seen)


def size_mb(name: str) -> float:
    """Bytes of a distribution's files; an editable one counts its package folder."""
    distribution = metadata.distribution(name)
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    if name == "agentkit-evolve":
        import agentkit

        files = list(Path(agentkit.__file__).parent.rglob("*.py"))
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


PARTS: dict[str, Callable[[ModuleType, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "runs": runs,
    "throughput": throughput,
    "stream": stream,
    "install": install,
}


def main() -> None:
    """Measure one part and print it."""
    name, part, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).parent / "adapters"))
    adapter = importlib.import_module(name)
    result: dict[str, Any] = {"absent": True}
    with tempfile.TemporaryDirectory() as folder:
        if part != "stream" or hasattr(adapter, "stream"):
            result = asyncio.run(PARTS[part](adapter, {**options, "folder": folder}))
    print(f"\n{MARK}{json.dumps(result)}", flush=True)
    os._exit(0)  # a peer may leave threads and open sessions behind


if __name__ == "__main__":
    main()
