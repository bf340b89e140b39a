"""What the benchmark scripts share: arguments, CPU time, processes that take turns, and tables.

Standard library only, so that a worker can import it in the environment of another framework.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for tests/support

DOCS = Path(__file__).resolve().parents[2] / "docs"
MARK = "@@RESULT "
"""Stands before the JSON that a worker prints."""

Row = Mapping[str, Any]


def arguments(about: str | None, *, rounds: int | None = 5) -> argparse.ArgumentParser:
    """The options of every script: ``--rounds`` where it has any, and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return parser


def cpu_ms(work: Callable[..., object], *given: Any) -> float:
    """CPU milliseconds of this process, all threads: other work on the machine does not count."""
    began = time.process_time_ns()
    work(*given)
    return (time.process_time_ns() - began) / 1e6


async def cpu_ms_of(work: Callable[[], Awaitable[object]]) -> float:
    """The same for something that is awaited."""
    began = time.process_time_ns()
    await work()
    return (time.process_time_ns() - began) / 1e6


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def medians(rounds: Sequence[Row]) -> dict[str, Any]:
    """Field by field over the rounds; what is no number is that of the first round."""
    return {
        name: median(one[name] for one in rounds) if isinstance(value, int | float) else value
        for name, value in rounds[0].items()
    }


def best(rounds: Sequence[Row]) -> dict[str, Any]:
    """Field by field the least over the rounds."""
    return {
        name: min(one[name] for one in rounds) if isinstance(value, int | float) else value
        for name, value in rounds[0].items()
    }


def result(found: Row) -> None:
    """Print what a worker measured, for ``worker`` to read."""
    print(f"\n{MARK}{json.dumps(found)}", flush=True)


def worker(command: Sequence[str | Path], **environment: str) -> dict[str, Any]:
    """Run a script in a process of its own, with one thread, and read its result."""
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | alone | {"no_proxy": "127.0.0.1"} | environment,
        capture_output=True,
        text=True,
        timeout=3_600,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return dict(json.loads(line.removeprefix(MARK)))
    said = f"{done.stdout[-500:]}{done.stderr[-2000:]}"
    raise SystemExit(f"{' '.join(map(str, command))[:200]} gave no result:\n{said}")


def in_turns(
    measures: Mapping[str, Callable[[], Row]], rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """The rounds of everything that is compared, one after the other within each round."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in measures}
    for number in range(rounds):
        for name, measure in measures.items():
            load = os.getloadavg()[0]
            print(f"round {number + 1} of {rounds}: {name} (load {load:.1f})", file=sys.stderr)
            found[name].append(dict(measure()))
    return found


def python_of(environment: str | None, venvs: Path | None) -> str | None:
    """The interpreter of a peer's environment, or ours for None; None where it is not there."""
    if environment is None:
        return sys.executable
    found = venvs and venvs.resolve() / environment / "bin" / "python"
    return str(found) if found and found.exists() else None


def machine() -> dict[str, str]:
    """What the figures were taken on, and when."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    model = next((one.split(":")[1].strip() for one in lines if one.startswith("model name")), "")
    return {
        "cpu": f"{os.cpu_count()} x {model or platform.machine()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
        "date": datetime.now(tz=UTC).date().isoformat(),
    }


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown; a column that only some have is empty in the others."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def report(rows: Sequence[Row] | Mapping[str, Sequence[Row]], options: argparse.Namespace) -> None:
    """Print a table, or one under each heading, and the machine; write them where ``--json`` says."""
    about = machine()
    parts = rows if isinstance(rows, Mapping) else {"": rows}
    for name, part in parts.items():
        print(f"\n## {name}\n\n{table(part)}" if name else table(part))
    print(f"\n{', '.join(f'{name} {value}' for name, value in about.items())}")
    if options.json:
        record = {"machine": about, "rows": rows}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def write_section(name: str, text: str) -> None:
    """Put a text between the marks of a section of docs/benchmarks.md."""
    page, start, end = DOCS / "benchmarks.md", f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = page.read_text(encoding="utf-8").split(start)
    page.write_text(f"{before}{start}{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
