"""``agentkit bench``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from agentkit.cli.output import say
from agentkit.errors import UsageError

BENCHMARKS: Mapping[str, str] = {
    "runtime": "tests/benchmarks/runtime/overhead.py",
    "retrieval": "tests/benchmarks/bench_retrieval.py",
}
"""Name to script, relative to the source checkout."""


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  agentkit bench
  agentkit bench retrieval
  agentkit bench runtime -- --help     the script's own options""",
)
@click.argument("name", type=click.Choice(list(BENCHMARKS)), default="runtime")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(name: str, arguments: tuple[str, ...]) -> None:
    """Run a benchmark of the source checkout: NAME is runtime (the default) or retrieval.

    Further arguments go to the benchmark's script. Benchmarks compare agentkit with itself and
    with others in one run, so they belong to the source, not to the installed package; how good
    the agent's answers are is measured by 'agentkit demo'.
    """
    root = Path(__file__).resolve().parents[2]
    script = root / BENCHMARKS[name]
    if not script.is_file():
        raise UsageError(
            "the benchmarks come with the source, not with the installed package; "
            "clone the repository and run: make bench"
        )
    say(f"Running {BENCHMARKS[name]}")
    # Our own script with the arguments that the user typed; no shell is involved.
    finished = subprocess.run([sys.executable, str(script), *arguments], cwd=root, check=False)  # noqa: S603
    raise click.exceptions.Exit(finished.returncode)
