"""What a composite costs beyond its children: our interpreter beside others, in one run.

    python overhead.py [--peers-venvs DIR] [--rounds 5] [--repeats 25] [--no-write]

Every engine runs the same two texts over the same five functions (``workload.py``), each in a
process of its own, in turns. A figure is the quickest of ``repeats`` stretches in the best round, in
CPU time. A peer runs in the virtual environment ``DIR/<its VENV>``; without it the peer is left out.
Reading hostile programs and inserting into a large library are measured for us alone.

Results go to docs/benchmarks/composites.json and into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[2] / "docs"
MARK = "@@RESULT "
ENGINES = {  # adapter: the environment that it needs; None for this one
    "plain_python": None,
    "agentkit_composite": None,
    "agentkit_waiting": None,
    "smolagents_peer": "smolagents",
    "monty_peer": "monty",
}
OURS = ("insert", "hostile")
"""Scripts beside this one that measure us alone."""

TARGETS = {"overhead": 10, "prices": 450, "read": 150, "insert": 5_000}
"""Microseconds that we want to stay below."""


def measure(command: list[str]) -> dict[str, Any]:
    """Run one process and read its result."""
    paths = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},  # for tests/support
        capture_output=True,
        text=True,
        cwd=HERE,
        timeout=600,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            result: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return result
    raise SystemExit(f"{' '.join(command)[:200]}\n{done.stdout[-500:]}{done.stderr[-2000:]}")


def python_of(environment: str | None, venvs: Path | None) -> str | None:
    """The interpreter that an engine runs in; None when its environment is absent."""
    if environment is None:
        return sys.executable
    found = venvs and venvs.resolve() / environment / "bin" / "python"
    return str(found) if found and found.exists() else None


def better(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The smaller figure of each part."""
    return {
        key: better(value, new[key])
        if isinstance(value, dict)
        else min(value, new[key])
        if isinstance(value, float)
        else value
        for key, value in old.items()
    }


def run_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds over all engines."""
    report: dict[str, Any] = {
        "machine": machine(),
        "rounds": arguments.rounds,
        "repeats": arguments.repeats,
        "engines": {},
        "targets": TARGETS,
    }
    for number in range(arguments.rounds):
        for name, environment in ENGINES.items():
            python = python_of(environment, arguments.peers_venvs)
            if python is None:
                continue
            print(f"round {number + 1} of {arguments.rounds}: {name} (load {load():.1f})")
            found = measure([python, str(HERE / "worker.py"), name, str(arguments.repeats)])
            known = report["engines"].get(name, found)
            report["engines"][name] = better(known, found)
    for script in OURS:
        print(f"{script} (load {load():.1f})")
        report[script] = measure(
            [sys.executable, str(HERE / f"{script}.py"), str(arguments.repeats)]
        )
    return report


def load() -> float:
    """Processes that wanted to run in the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, str]:
    """What the numbers were taken on."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in cpuinfo if "model name" in line), "")
    return {
        "cpu": f"{os.cpu_count()} x {model or platform.machine()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": f"{load():.1f}",
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }


HEADER = (
    "engine",
    "five children, us",
    "beyond the children, us",
    "100 rows, us",
    "beyond the children, us",
    "reading the text, us",
)


def table(report: dict[str, Any]) -> str:
    """The engines as Markdown."""
    lines = [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    floor = report["engines"]["plain_python"]
    for name, found in report["engines"].items():
        cells = [f"{name} {found['version']}".strip()]
        for part in ("quote", "prices"):
            cpu = found[part]["cpu_us"]
            beyond = cpu - floor[part]["cpu_us"]
            cells += [f"{cpu:.1f}", "-" if found is floor else f"{beyond:.1f}"]
        cells.append(f"{found['read']['cpu_us']:.0f}" if "read" in found else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def own_figures(report: dict[str, Any]) -> str:
    """What was measured for us alone, as a list."""
    insert, hostile = report["insert"], report["hostile"]
    lines = []
    lines.append(
        f"* Inserting a composite into a library of {insert['tools']:,} tools, without running "
        f"contracts: {insert['cpu_us'] / 1e3:.2f} ms."
    )
    for kind, verb in (("refusal", "refused"), ("stop", "stopped")):
        lines.append(
            f"* {hostile[verb]} hostile programs {verb}: the slowest took "
            f"{hostile[f'slowest_{kind}_ms']:.1f} ms ({hostile[f'slowest_{kind}']})."
        )
    lines.append(f"* Memory beyond the start, over all of them: {hostile['peak_mb']:.1f} MB.")
    return "\n".join(lines)


def write(report: dict[str, Any], command: str) -> None:
    """The JSON file, and the figures between the marks of the page."""
    path = DOCS / "benchmarks" / "composites.json"
    path.write_text(json.dumps({"command": command, **report}, indent=1) + "\n", encoding="utf-8")
    about = report["machine"]
    note = (
        f"`{command}` on {about['cpu']}, {about['system']}, Python {about['python']}, "
        f"{about['date']}; CPU time, the best of {report['repeats']} stretches in "
        f"{report['rounds']} rounds. The load average was {about['load']} at the start."
    )
    page = DOCS / "benchmarks.md"
    start, end = "<!-- composites -->\n", "<!-- /composites -->"
    before, rest = page.read_text(encoding="utf-8").split(start)
    after = rest.split(end)[1]
    text = f"{note}\n\n{table(report)}\n\n{own_figures(report)}\n"
    page.write_text(f"{before}{start}{text}{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers-venvs", type=Path, help="folder of environments of the peers")
    parser.add_argument("--rounds", type=int, default=3, help="times that every engine has a turn")
    parser.add_argument("--repeats", type=int, default=25, help="stretches timed in a turn")
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    report = run_all(arguments)
    print(f"{table(report)}\n\n{own_figures(report)}")
    if not arguments.no_write:
        peers = " --peers-venvs ..." if arguments.peers_venvs else ""
        write(report, f"python tests/benchmarks/composites/overhead.py{peers}")


if __name__ == "__main__":
    main()
