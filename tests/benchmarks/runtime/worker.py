"""One measurement inside the environment of one adapter; called by ``overhead.py``.

    python worker.py ADAPTER PART OPTIONS

Standard library only, so that it runs wherever an adapter does.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from adapters import ADAPTERS, Adapter
from harness import cpu_ms_of, result

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
IMPORTS = """
import json, sys, time
before = time.process_time()
{statement}
cpu = time.process_time() - before
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({{"cpu_ms": cpu * 1e3, "rss_mb": int(lines["VmRSS"].split()[0]) / 1024}}))
"""
Options = dict[str, Any]


def make_tools(count: int) -> list[Callable[..., Any]]:
    """Distinct documented functions in a real file, because some runtimes read the source."""
    folder = tempfile.mkdtemp()
    text = "".join(TOOL.format(i=i) for i in range(count))
    Path(folder, "bench_tools.py").write_text(text, encoding="utf-8")
    sys.path.insert(0, folder)
    module = importlib.import_module("bench_tools")
    return [getattr(module, f"tool_{i}") for i in range(count)]


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def answered(agent: Adapter) -> None:
    """One run; a runtime that does not get to the answer is not measured."""
    checked(await agent.run(QUESTION))


def checked(answer: str) -> None:
    """See that it is the stub's answer."""
    if not answer.startswith("done"):
        raise SystemExit(f"wrong answer: {answer[:200]!r}")


async def runs(adapter: type[Adapter], options: Options) -> Options:
    """Construction, first run, and run after run, one at a time."""
    tools, began = make_tools(options["tools"]), time.perf_counter()
    agent = adapter(options["url"], tools)
    built = time.perf_counter()
    await answered(agent)
    first = time.perf_counter()
    for _ in range(WARM_UP):
        await answered(agent)
    spent = [await cpu_ms_of(lambda: answered(agent)) for _ in range(options["runs"])]
    return {
        "build_ms": (built - began) * 1e3,
        "first_ms": (first - built) * 1e3,
        "cpu_ms": median(spent),
    }


async def throughput(adapter: type[Adapter], options: Options) -> Options:
    """Many runs at once on one event loop."""
    agent = adapter(options["url"], make_tools(options["tools"]))
    await asyncio.gather(*(answered(agent) for _ in range(WARM_UP)))
    gc.collect()
    slots = asyncio.Semaphore(options["concurrency"])

    async def one() -> None:
        async with slots:
            await answered(agent)

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(options["runs"])))
    seconds = time.perf_counter() - began
    return {"runs_per_s": options["runs"] / seconds, "peak_mb": peak_mb()}


async def stream(adapter: type[Adapter], options: Options) -> Options:
    """Streamed runs, one at a time."""
    agent = adapter(options["url"], make_tools(options["tools"]))

    async def one() -> None:
        checked("".join([piece async for piece in agent.stream(QUESTION)]))

    spent = [await cpu_ms_of(one) for _ in range(WARM_UP + options["runs"])]
    return {"cpu_ms": median(spent[WARM_UP:])}


async def imports(adapter: type[Adapter], _: Options) -> Options:
    """Importing what a run needs, in a fresh interpreter."""
    command = [sys.executable, "-c", IMPORTS.format(statement=adapter.imports)]
    found: Options = json.loads(await asyncio.to_thread(subprocess.check_output, command))
    return found


async def install(adapter: type[Adapter], _: Options) -> Options:
    """Size on disk of the first distribution and all that it requires, numpy apart."""
    names = set(required(adapter.distributions[0], set())) - {"numpy"}
    return {
        "mb": sum(map(size_mb, names)),
        "versions": {name: metadata.version(name) for name in adapter.distributions},
    }


def required(name: str, seen: set[str]) -> Iterator[str]:
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
            yield from required(requirement.name, seen)


def size_mb(name: str) -> float:
    """Bytes of a distribution's files; an editable one counts its package folder."""
    distribution = metadata.distribution(name)
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    if name == "agentkit-evolve":
        import agentkit

        files = list(Path(agentkit.__file__).parent.rglob("*.py"))
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


PARTS = {
    "runs": runs,
    "throughput": throughput,
    "stream": stream,
    "imports": imports,
    "install": install,
}

if __name__ == "__main__":
    result(asyncio.run(PARTS[sys.argv[2]](ADAPTERS[sys.argv[1]], json.loads(sys.argv[3]))))
    os._exit(0)  # a peer may leave threads and open sessions behind
