"""``agentkit-train verl``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from agentkit.cli.output import say


@click.command(
    epilog="""\b
Examples:
  agentkit-train verl examples/cluster_verl.yaml --output /shared/loans
  agentkit-train verl run.yaml --output /shared/loans --set hardware.machines=4"""
)
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write; every machine must see it under this path.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the configuration, such as hardware.machines=4.",
)
def verl(config: Path, folder: Path, changes: tuple[str, ...]) -> None:
    """Write what verl is started with, for clusters that run it, as CONFIG says.

    CONFIG is that of 'grpo': tasks, reward, objective and optimiser are verl's then. What learns
    beside the policy does not run there, but for fixed weights; all of it that is on is named.
    Neither verl nor torch is loaded. The last line printed starts the training.
    """
    from agentkit_training.config.jobs import CoevolveConfig
    from agentkit_training.config.kinds import read_run
    from agentkit_training.jobs.verl import verl_job

    done = verl_job(read_run(config, CoevolveConfig, changes=changes), folder)
    sizes = ", ".join(f"{count} {name}" for name, count in done.rows.items())
    say(f"Wrote {done.folder}: {sizes} tasks.")
    if done.library_version:
        say(f"Rollouts begin with version {done.library_version} of the library.")
    click.echo(shlex.join(done.command))
