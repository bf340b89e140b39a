"""Measures one engine inside its own environment; called by ``overhead.py``.

    python worker.py ADAPTER REPEATS        one line of JSON, after a mark

Standard library only, so that it runs wherever an adapter does. Times are CPU times of this process
and of the workers that the engine started, because a shared machine makes wall time mean little;
the wall time stands beside them.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import workload

MARK = "@@RESULT "
STRETCH_SECONDS = 0.004
"""How long one stretch of repeated calls takes at least; a clock can not time a single one."""


def cpu_seconds(processes: Sequence[int]) -> float:
    """CPU time of this process and of others, by the scheduler's own books."""
    others = sum(
        int((thread / "schedstat").read_text().split()[0])
        for process in processes
        for thread in Path(f"/proc/{process}/task").iterdir()
    )
    return time.process_time() + others / 1e9


def best(call: Callable[[], Any], processes: Sequence[int], repeats: int) -> dict[str, float]:
    """The quickest of some stretches, in microseconds a call."""
    number = 1
    while True:
        started = time.perf_counter()
        for _ in range(number):
            call()
        if time.perf_counter() - started > STRETCH_SECONDS:
            break
        number *= 2
    cpu, wall = [], []
    for _ in range(repeats):
        before, started = cpu_seconds(processes), time.perf_counter()
        for _ in range(number):
            call()
        wall.append((time.perf_counter() - started) / number)
        cpu.append((cpu_seconds(processes) - before) / number)
    return {"cpu_us": min(cpu) * 1e6, "wall_us": min(wall) * 1e6}


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Both programs and the reading of the first one."""
    adapter = importlib.import_module(f"adapters.{name}")
    engine = adapter.Engine()
    processes = getattr(engine, "processes", ())
    result: dict[str, Any] = {
        "version": metadata.version(adapter.DISTRIBUTION) if adapter.DISTRIBUTION else ""
    }
    gc.freeze()
    for part, source, arguments in (
        ("quote", workload.QUOTE, workload.QUOTE_ARGUMENTS),
        ("prices", workload.PRICES, workload.PRICES_ARGUMENTS),
    ):
        call = engine.prepare(part, source, arguments)
        if call() != getattr(workload, part)(**arguments):
            raise SystemExit(f"{name} gives another result for {part}: {call()}")
        result[part] = best(call, processes, repeats)
    if engine.read is not None:
        result["read"] = best(lambda: engine.read(workload.QUOTE), processes, repeats)
    getattr(engine, "close", lambda: None)()
    return result


if __name__ == "__main__":
    print(MARK + json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
