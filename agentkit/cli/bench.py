"""``agentkit bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from agentkit.cli.lazy import LazyCommands
from agentkit.cli.output import say
from agentkit.errors import UsageError

OVERHEAD = "tests/benchmarks/runtime/overhead.py"
"""The benchmark of the runtime, relative to the source checkout."""


@click.group(
    cls=LazyCommands,
    places={"retrieval": "agentkit.cli.bench_retrieval:retrieval"},
    epilog="""\b
Examples:
  agentkit bench retrieval --tools tools.jsonl --queries queries.jsonl
  agentkit bench runtime""",
)
def bench() -> None:
    """Measure agentkit: how well it finds tools, and what the runtime costs.

    How good an agent's answers are is measured by 'agentkit eval'.
    """


@bench.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  agentkit bench runtime
  agentkit bench runtime -- --help     the script's own options""",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def runtime(arguments: tuple[str, ...]) -> None:
    """Compare the runtime with others; needs the source checkout.

    Further arguments go to the benchmark's script. It compares agentkit with other runtimes in
    one run, so it belongs to the source, not to the installed package.
    """
    root = Path(__file__).resolve().parents[2]
    script = root / OVERHEAD
    if not script.is_file():
        raise UsageError(
            "this benchmark comes with the source, not with the installed package; "
            "clone the repository and run: make bench"
        )
    say(f"Running {OVERHEAD}")
    # Our own script with the arguments that the user typed; no shell is involved.
    finished = subprocess.run([sys.executable, str(script), *arguments], cwd=root, check=False)  # noqa: S603
    raise click.exceptions.Exit(finished.returncode)
