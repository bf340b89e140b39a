"""``agentkit-train report``."""

from __future__ import annotations

from pathlib import Path

import click

from agentkit.cli.output import say
from agentkit_training.cli.pages import PAGE
from agentkit_training.report.page import run_html
from agentkit_training.runs.directory import RunDirectory


@click.command(
    epilog="""\b
Examples:
  agentkit-train report runs/loans
  agentkit-train report runs/loans --output loans.html"""
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=PAGE, help="Where to write it; report.html in RUN.")
def report(run: Path, output: Path | None) -> None:
    """Draw the curves of RUN, the folder of a run, as one HTML page.

    A run that is under way, or was broken off, shows what there is.
    """
    directory = RunDirectory(run)
    target = output or directory.path / "report.html"
    target.write_text(run_html(directory), encoding="utf-8")
    say(f"Wrote {target}")
