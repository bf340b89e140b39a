"""``agentkit-train coevolve`` and ``agentkit-train grpo``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentkit.errors import UsageError
from agentkit_training.cli.commands import command_line, run_options
from agentkit_training.cli.dry_run import show_run
from agentkit_training.cli.processes import shown_run, told_once
from agentkit_training.distributed.ranks import company

if TYPE_CHECKING:
    from agentkit_training.config.jobs import CoevolveConfig


@click.command(
    epilog="""\b
Examples:
  agentkit-train coevolve examples/coevolve.yaml --output runs/loans
  agentkit-train coevolve examples/coevolve.yaml --output runs/tooldna --ablation tooldna
  agentkit-train coevolve examples/coevolve.yaml --output runs/loans --resume"""
)
@run_options
@click.option("--ablation", help="A named configuration of the papers, such as seal-no-weighting.")
def coevolve(
    *,
    config: Path,
    folder: Path,
    changes: tuple[str, ...],
    resume: bool,
    dry_run: bool,
    ablation: str | None,
) -> None:
    """Train the policy while its tools' texts and their library learn, as CONFIG says.

    Each switch of the section 'coevolution' is one mechanism of a paper; --ablation sets all of
    them at once.
    """
    from agentkit_training.coevolution.settings import ablation as named

    with told_once():
        wanted = _read(config, changes)
        if ablation is not None:
            wanted = replace(wanted, coevolution=named(ablation, wanted.coevolution))
        _run(wanted, folder, resumes=resume, is_dry=dry_run)


@click.command(
    epilog="""\b
Examples:
  agentkit-train grpo examples/grpo.yaml --output runs/grpo
  agentkit-train grpo examples/grpo.yaml --output runs/trl --set engine.name=trl"""
)
@run_options
def grpo(
    *,
    config: Path,
    folder: Path,
    changes: tuple[str, ...],
    resume: bool,
    dry_run: bool,
) -> None:
    """Train the policy with rewards alone, as CONFIG says; the library stays as it is.

    Weights by diagnosis and the training interface (SEAL) may be on; what changes the library
    belongs to 'coevolve'.
    """
    with told_once():
        wanted = _read(config, changes)
        if wanted.coevolution.changes_library:
            raise UsageError(
                f"{config} has a switch on that changes the library; use agentkit-train coevolve, "
                "or turn evolution, feedback, evidence and composites off"
            )
        _run(wanted, folder, resumes=resume, is_dry=dry_run)


def _read(config: Path, changes: tuple[str, ...]) -> CoevolveConfig:
    from agentkit_training.config.jobs import CoevolveConfig
    from agentkit_training.config.kinds import read_run

    return read_run(config, CoevolveConfig, changes=changes)


def _run(wanted: CoevolveConfig, folder: Path, *, resumes: bool, is_dry: bool) -> None:
    if is_dry:
        rank, world = company()
        if rank == 0:
            show_run(wanted, processes=world)
        return
    from agentkit_training.jobs.coevolve import coevolve_job

    shown_run(
        lambda tell, ranks: coevolve_job(
            wanted, folder, command=command_line(), resumes=resumes, listen=tell, ranks=ranks
        ),
        device=wanted.policy.device,
        steps=wanted.coevolution.steps,
    )
