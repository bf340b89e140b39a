"""What the runtime costs around the model: import, memory, CPU per run, throughput, streaming, size.

    python overhead.py [--peers-venvs DIR] [--rounds 3] [--quick] [--only agentkit_runtime,raw_httpx]

Every adapter runs the same scripted work against ``stub_server.py``, each part in a process of its
own. Rounds go over the adapters in turn, so that a busy minute hits all of them; medians are
reported. Compare within one table only: another machine, another day, other numbers.

The floors run in this environment. A peer runs in the virtual environment ``DIR/<its VENV>``; without
it the peer is left out. Results go to docs/benchmarks/runtime.json and into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[2] / "docs"
ORDER = ("agentkit_runtime", "raw_httpx", "raw_aiohttp", "pydantic_ai_peer", "openai_agents_peer")
MARK = "@@RESULT "
IMPORT_PROBE = """
import sys, time
before, modules = time.process_time(), len(sys.modules)
{statement}
cpu = time.process_time() - before
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
result = {{"cpu_ms": cpu * 1e3, "rss_mb": int(lines["VmRSS"].split()[0]) / 1024,
          "modules": len(sys.modules) - modules}}
import json
print("@@RESULT " + json.dumps(result))
"""


def constants(path: Path) -> dict[str, Any]:
    """Constants at the top of an adapter, read without importing it here."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            value = node.value
            if isinstance(value, ast.JoinedStr):  # f"{IMPORT}; more"
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else found["IMPORT"]
                    for part in value.values
                )
            else:
                text = ast.literal_eval(value)
            found |= {target.id: text for target in node.targets if isinstance(target, ast.Name)}
    return found


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


def environment() -> dict[str, str]:
    """Keys, telemetry and proxies off, so that everybody talks to the stub alone."""
    local = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return {**os.environ, **local, "OPENAI_API_KEY": "x", "OTEL_SDK_DISABLED": "true"}


def measure(command: list[str]) -> dict[str, Any]:
    """Run one process and read its result."""
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            result: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return result
    raise SystemExit(f"{' '.join(command)[:200]}\n{done.stdout[-500:]}{done.stderr[-2000:]}")


def python_of(adapter: dict[str, Any], venvs: Path | None) -> str | None:
    """The interpreter that an adapter runs in; None when its environment is absent."""
    if venvs is not None and (found := venvs / adapter["VENV"] / "bin" / "python").exists():
        return str(found)
    return sys.executable if adapter["VENV"] in {"agentkit", "floors"} else None


def one_round(name: str, python: str, url: str, *, quick: bool) -> dict[str, dict[str, Any]]:
    """All parts of one adapter, each in a fresh process."""
    adapter = constants(HERE / "adapters" / f"{name}.py")
    count = 1 if quick else 4

    def part(kind: str, latency: int = 0, **options: int) -> dict[str, Any]:
        options_json = json.dumps({"url": f"{url}/{latency}/v1", **options})
        return measure([python, str(HERE / "worker.py"), name, kind, options_json])

    def imported(statement: str) -> dict[str, Any]:
        return measure([python, "-c", IMPORT_PROBE.format(statement=statement)])

    return {
        "bare": imported("pass"),
        "import": imported(adapter["IMPORT"]),
        "import_full": imported(adapter["IMPORT_FULL"]),
        "runs_10": part("runs", tools=10, runs=25 * count),
        "runs_500": part("runs", tools=500, runs=10 * count),
        "throughput": part("throughput", tools=10, runs=100 * count, concurrency=50),
        "throughput_50ms": part(
            "throughput", latency=50, tools=10, runs=100 * count, concurrency=50
        ),
        "stream": part("stream", tools=10, runs=10 * count),
    }


def medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Field by field over the rounds."""
    return {
        field: statistics.median(row[field] for row in rows)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value
        for field, value in rows[0].items()
    }


def machine() -> dict[str, str]:
    """What the numbers were taken on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in cpuinfo if "model name" in line), "")
    return {
        "cpu": f"{os.cpu_count()} x {model or platform.machine()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }


def run_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds over all adapters."""
    rows: dict[str, list[dict[str, dict[str, Any]]]] = {}
    report: dict[str, Any] = {"machine": machine(), "rounds": arguments.rounds, "adapters": {}}
    names = arguments.only.split(",") if arguments.only else ORDER
    with stub_server() as url:
        for number in range(arguments.rounds):
            for name in names:
                adapter = constants(HERE / "adapters" / f"{name}.py")
                python = python_of(adapter, arguments.peers_venvs)
                if python is None:
                    continue
                load = os.getloadavg()[0]
                print(f"round {number + 1} of {arguments.rounds}: {name} (load {load:.1f})")
                rows.setdefault(name, []).append(
                    one_round(name, python, url, quick=arguments.quick)
                )
                if number == 0:
                    worker = [python, str(HERE / "worker.py"), name]
                    report["adapters"][name] = {"install": measure([*worker, "install", "{}"])}
    for name, rounds in rows.items():
        parts = {part: medians([row[part] for row in rounds]) for part in rounds[0]}
        report["adapters"][name] |= parts
    return report


COLUMNS = (
    ("install MB", ("install", "mb"), "{:.0f}"),
    ("import CPU ms", ("import_full", "cpu_ms"), "{:.0f}"),
    ("import RSS MB", ("import_full", "rss_mb"), "{:.0f}"),
    ("build ms", ("runs_10", "build_ms"), "{:.0f}"),
    ("first run ms", ("runs_10", "first_ms"), "{:.1f}"),
    ("CPU ms a run", ("runs_10", "cpu_ms"), "{:.2f}"),
    ("with 500 tools", ("runs_500", "cpu_ms"), "{:.2f}"),
    ("runs/s at 50", ("throughput", "runs_per_s"), "{:.0f}"),
    ("at 50 ms latency", ("throughput_50ms", "runs_per_s"), "{:.0f}"),
    ("stream CPU ms", ("stream", "cpu_ms"), "{:.2f}"),
    ("peak MB", ("throughput_50ms", "peak_mb"), "{:.0f}"),
)


def table(report: dict[str, Any]) -> str:
    """The report as Markdown, with CPU per run as a multiple of ours."""
    header = ["adapter", *(title for title, _, _ in COLUMNS), "CPU a run / ours"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    ours = report["adapters"].get("agentkit_runtime", {}).get("runs_10", {}).get("cpu_ms")
    for parts in report["adapters"].values():
        versions = parts["install"]["versions"]
        first = next(iter(versions))
        cells = [f"{first} {versions[first]}"]
        for _, (part, field), form in COLUMNS:
            value = parts[part].get(field)
            cells.append("-" if value is None else form.format(value))
        cells.append(f"{parts['runs_10']['cpu_ms'] / ours:.1f}" if ours else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(report: dict[str, Any], command: str) -> None:
    """The JSON file, and the table between the marks of the page."""
    (DOCS / "benchmarks").mkdir(exist_ok=True)
    path = DOCS / "benchmarks" / "runtime.json"
    path.write_text(json.dumps({"command": command, **report}, indent=1) + "\n", encoding="utf-8")
    about = report["machine"]
    note = (
        f"`{command}` on {about['cpu']}, {about['system']}, Python {about['python']}, "
        f"{about['date']}; medians of {report['rounds']} rounds. The load average was "
        f"{about['load']} at the start; only ratios mean something on a busy machine."
    )
    page = DOCS / "benchmarks.md"
    start, end = "<!-- runtime -->\n", "<!-- /runtime -->"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(start)
    after = rest.split(end)[1]
    page.write_text(f"{before}{start}{note}\n\n{table(report)}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers-venvs", type=Path, help="folder of environments of the peers")
    parser.add_argument("--rounds", type=int, default=3, help="times that every part is measured")
    parser.add_argument("--quick", action="store_true", help="a quarter of the runs")
    parser.add_argument("--only", help="adapters to measure, separated by commas")
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    report = run_all(arguments)
    print(table(report))
    if not arguments.no_write:
        write(report, "make bench" + (" PEERS=..." if arguments.peers_venvs else ""))


if __name__ == "__main__":
    main()
