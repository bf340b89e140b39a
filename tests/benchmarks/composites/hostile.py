"""How long and how much memory hostile programs take until they are refused or stopped.

python hostile.py        one line of JSON, after a mark
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.hostile_programs import REFUSED_PROGRAMS, STOPPED_PROGRAMS
from support.random_children import ChildrenInUse

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError, CompositeRunError

MARK = "@@RESULT "


def milliseconds(attempt: Callable[[], Any]) -> float:
    """CPU time of the first attempt, which is the one that counts."""
    before = time.process_time()
    try:
        attempt()
    except (CompositeError, CompositeRunError):
        return (time.process_time() - before) * 1e3
    raise SystemExit("a hostile program came through")


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ``ru_maxrss`` remembers the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Try every program once."""
    children = ChildrenInUse()
    usual = parse("def f(x):\n    return add(x, 1)\n", children.tools).program
    Composite(usual, children.by_name, name="f").run({"x": 1})
    runs = [
        (
            program.name,
            Composite(parse(program.source, children.tools).program, children.by_name, name="f"),
            program.arguments,
        )
        for program in STOPPED_PROGRAMS
    ]
    before = peak_mb()
    refusals = {
        program.name: milliseconds(lambda source=program.source: parse(source, children.tools))
        for program in REFUSED_PROGRAMS
    }
    stops = {
        name: milliseconds(lambda run=composite.run, given=arguments: run(given))
        for name, composite, arguments in runs
    }
    slowest_refusal, slowest_stop = max(refusals, key=refusals.get), max(stops, key=stops.get)
    result = {
        "refused": len(refusals),
        "slowest_refusal": slowest_refusal,
        "slowest_refusal_ms": refusals[slowest_refusal],
        "stopped": len(stops),
        "slowest_stop": slowest_stop,
        "slowest_stop_ms": stops[slowest_stop],
        "peak_mb": peak_mb() - before,
    }
    print(MARK + json.dumps(result))


if __name__ == "__main__":
    main()
