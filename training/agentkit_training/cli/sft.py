"""``agentkit-train sft``."""

from __future__ import annotations

from pathlib import Path

import click

from agentkit_training.cli.dry_run import show_tuning
from agentkit_training.cli.options import command_line, run_options
from agentkit_training.cli.processes import shown_run, told_once
from agentkit_training.distributed.failing import company


@click.command(
    epilog="""\b
Examples:
  agentkit-train sft examples/sft.yaml --output runs/sft
  agentkit-train sft examples/sft.yaml --output runs/sft --resume
  agentkit-train sft examples/sft.yaml --output runs/sft2 --set sft.epochs=2"""
)
@run_options
def sft(
    *,
    config: Path,
    folder: Path,
    changes: tuple[str, ...],
    resume: bool,
    dry_run: bool,
) -> None:
    """Fine-tune on the gold answers of tasks, as the file CONFIG says.

    With a section 'toolace' the tasks are selected in rounds by what the policy can learn from,
    and self-refine samples are added (ToolACE-R).
    """
    from agentkit_training.config.jobs import SftConfig
    from agentkit_training.config.kinds import read_run
    from agentkit_training.jobs.sft import sft_job

    with told_once():
        wanted = read_run(config, SftConfig, changes=changes)
        if dry_run:
            rank, world = company()
            if rank == 0:
                show_tuning(wanted, processes=world)
            return
        shown_run(
            lambda tell, ranks: sft_job(
                wanted, folder, command=command_line(), resumes=resume, listen=tell, ranks=ranks
            ),
            device=wanted.policy.device,
        )
