"""``agentkit-train sft``."""

from __future__ import annotations

from pathlib import Path

import click

from agentkit_training.cli.dry_run import show_tasks
from agentkit_training.cli.options import command_line, run_options
from agentkit_training.cli.processes import shown_run, told_once


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
    from agentkit_training.config.reading import read_config
    from agentkit_training.jobs.sft import sft_job

    with told_once():
        wanted = read_config(config, SftConfig, changes=changes)
        if dry_run:
            show_tasks(wanted.policy, wanted.tasks)
            return
        shown_run(
            lambda tell, ranks: sft_job(
                wanted, folder, command=command_line(), resumes=resume, listen=tell, ranks=ranks
            ),
            device=wanted.policy.device,
        )
