"""``agentkit-train export``."""

from __future__ import annotations

from pathlib import Path

import click

from agentkit.cli.output import say
from agentkit.errors import UsageError


@click.command(
    epilog="""\b
Examples:
  agentkit-train export runs/loans --output loans
  agentkit-train export runs/loans --output loans --precision f16"""
)
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write the hand-over.",
)
@click.option(
    "--precision",
    type=click.Choice(["f32", "f16"]),
    default="f32",
    show_default=True,
    help="Of the adapter's numbers.",
)
def export(run: Path, folder: Path, precision: str) -> None:
    """Write what RUN has learned so far as the runtime takes it: adapter or weights, and library.

    A run that ended has its hand-over already, in 'handover'; this makes one from the newest
    checkpoint of a run that is under way, or with another precision.
    """
    from agentkit_training.cli.showing import show_handover
    from agentkit_training.jobs.export import export_job
    from agentkit_training.runs.directory import RunDirectory

    if folder.resolve().is_relative_to((run / "checkpoints").resolve()):
        raise UsageError(f"{folder} lies among the checkpoints of the run; choose another folder")
    handed = export_job(run, folder, adapter_precision="f16" if precision == "f16" else "f32")
    say(f"Wrote {handed.folder}.")
    show_handover(handed, RunDirectory(run))
