"""What the runtime costs around the model, beside others (docs/benchmarks.md).

    python tests/benchmarks/runtime/overhead.py [--peers-venvs DIR] [--rounds 3] [--quick] [--only NAME,...] [--before CHECKOUT]

Every adapter of ``adapters.py`` does the same scripted work against ``stub_server.py``, each part in a
process of its own, in turns; medians of the rounds are reported. A peer runs in the environment
``DIR/<its venv>``; without it the peer is left out. Results go to docs/benchmarks/runtime.json and into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from adapters import ADAPTERS
from harness import (
    DOCS,
    arguments,
    in_turns,
    machine,
    medians,
    python_of,
    table,
    worker,
    write_section,
)

HERE = Path(__file__).resolve().parent


@contextmanager
def stub_server() -> Iterator[str]:
    """The stub in a process of its own; its base address."""
    command = [sys.executable, str(HERE / "stub_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def one_round(
    name: str, python: str, url: str, *, quick: bool, **environment: str
) -> dict[str, Any]:
    """All parts of one adapter, each in a fresh process."""
    count = 1 if quick else 4
    environment |= {"OPENAI_API_KEY": "x", "OTEL_SDK_DISABLED": "true"}

    def part(kind: str, latency: int = 0, **options: int) -> dict[str, Any]:
        asked = json.dumps({"url": f"{url}/{latency}/v1", **options})
        command = [python, HERE / "worker.py", name, kind, asked]
        found = worker(command, **environment)
        return {
            f"{kind} {latency} {options.get('tools')}: {key}": one for key, one in found.items()
        }

    return {
        **part("install"),
        **part("imports"),
        **part("runs", tools=10, runs=25 * count),
        **part("runs", tools=500, runs=10 * count),
        **part("throughput", tools=10, runs=100 * count, concurrency=50),
        **part("throughput", latency=50, tools=10, runs=100 * count, concurrency=50),
        **(part("stream", tools=10, runs=10 * count) if ADAPTERS[name].streams else {}),
    }


COLUMNS = {
    "install MB": ("install 0 None: mb", "{:.0f}"),
    "import CPU ms": ("imports 0 None: cpu_ms", "{:.0f}"),
    "import RSS MB": ("imports 0 None: rss_mb", "{:.0f}"),
    "build ms": ("runs 0 10: build_ms", "{:.0f}"),
    "first run ms": ("runs 0 10: first_ms", "{:.1f}"),
    "CPU ms a run": ("runs 0 10: cpu_ms", "{:.2f}"),
    "with 500 tools": ("runs 0 500: cpu_ms", "{:.2f}"),
    "runs/s at 50": ("throughput 0 10: runs_per_s", "{:.0f}"),
    "at 50 ms latency": ("throughput 50 10: runs_per_s", "{:.0f}"),
    "stream CPU ms": ("stream 0 10: cpu_ms", "{:.2f}"),
    "peak MB": ("throughput 50 10: peak_mb", "{:.0f}"),
}


def rows_of(found: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """The table, with CPU per run as a multiple of ours."""
    ours = found.get("agentkit_runtime", {}).get("runs 0 10: cpu_ms")
    for name, figures in found.items():
        adapter, _, before = name.partition(" ")
        kind, versions = ADAPTERS[adapter], figures["install 0 None: versions"]
        first, note = kind.distributions[0], f", {before}" if before else kind.note
        row = {"adapter": f"{first} {versions[first]}{note}"}
        for title, (field, form) in COLUMNS.items():
            row[title] = form.format(figures[field]) if field in figures else "-"
        row["CPU a run / ours"] = f"{figures['runs 0 10: cpu_ms'] / ours:.1f}" if ours else "-"
        yield row


def main(options: argparse.Namespace) -> None:
    """Measure, print, write."""
    about, names = machine(), options.only.split(",") if options.only else list(ADAPTERS)
    pythons = {name: python_of(ADAPTERS[name].venv, options.peers_venvs) for name in names}
    with stub_server() as url:
        measures = {
            name: partial(one_round, name, python, url, quick=options.quick)
            for name, python in pythons.items()
            if python is not None
        }
        if options.before:
            checkout = {"PYTHONPATH": str(options.before.resolve())}
            measures["agentkit_runtime before"] = partial(
                one_round, "agentkit_runtime", sys.executable, url, quick=options.quick, **checkout
            )
        found = {n: medians(one) for n, one in in_turns(measures, options.rounds).items()}
    rows = list(rows_of(found))
    print(table(rows))
    if options.no_write:
        return
    note = (
        f"{about['cpu']}, {about['system']}, Python {about['python']}, {about['date']}; medians of "
        f"{options.rounds} rounds. The load average was {about['load']} at the start; only ratios mean "
        "something on a busy machine."
    )
    write_section("runtime", f"{note}\n\n{table(rows)}")
    record = json.dumps({"machine": about, "rounds": options.rounds, "adapters": found}, indent=1)
    (DOCS / "benchmarks" / "runtime.json").write_text(f"{record}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--peers-venvs", type=Path, help="folder of environments of the peers")
    parser.add_argument("--before", type=Path, help="an older checkout, to measure it in turns")
    parser.add_argument("--quick", action="store_true", help="a quarter of the runs")
    parser.add_argument("--only", help="adapters to measure, separated by commas")
    parser.add_argument("--no-write", action="store_true", help="print only")
    main(parser.parse_args())
