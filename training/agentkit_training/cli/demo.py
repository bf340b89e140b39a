"""``agentkit-train demo``."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentkit.cli.output import Column, print_table, print_text, say
from agentkit_training.cli.options import command_line
from agentkit_training.cli.processes import told_once
from agentkit_training.cli.showing import shown_steps

if TYPE_CHECKING:
    from agentkit_training.jobs.runtime import Combination

CONFIG = "demo.yaml"


@click.command(
    epilog="""\b
Examples:
  agentkit-train demo
  agentkit-train demo --output runs/demo --set coevolution.steps=2"""
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="runs/demo",
    show_default=True,
    help="Folder of the run.",
)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key.")
@click.option("--resume", is_flag=True, help="Go on with the run that is in the folder.")
@told_once()
def demo(folder: Path, changes: tuple[str, ...], resume: bool) -> None:  # noqa: FBT001 - click
    """Train a small real model on a CPU while its library learns, then ask the runtime.

    The tools refuse what their definitions do not say. The policy is fine-tuned on a few gold
    answers and trained with rewards; what the tools refuse becomes rules of the library, through
    the Tool Manager. At the end the runtime answers held-out questions with either model and
    either library.
    """
    from agentkit_training.config.jobs import CoevolveConfig
    from agentkit_training.config.reading import parse_config
    from agentkit_training.jobs.coevolve import coevolve_job
    from agentkit_training.jobs.runtime import combinations
    from agentkit_training.jobs.trained import handover_of
    from agentkit_training.tasks.loading import load_tasks_for_training

    text = resources.files("agentkit_training").joinpath(CONFIG).read_text(encoding="utf-8")
    wanted = parse_config(text, CoevolveConfig, name=CONFIG, changes=changes)
    started = time.monotonic()
    with shown_steps(steps=wanted.coevolution.steps) as tell:
        run = coevolve_job(wanted, folder, command=command_line(), resumes=resume, listen=tell)
    say(f"Trained in {time.monotonic() - started:.0f} s. Now the runtime answers, by itself:")
    handed = handover_of(run)
    test = load_tasks_for_training(wanted.tasks).test
    found = list(combinations(handed, test, wanted.asking.settings(), tell=say))
    _show(found)
    print_text(f"The whole took {time.monotonic() - started:.0f} s. The run: {run.path}, with its")
    print_text("curves in report.html. Ask the trained model with the evolved library:")
    click.echo(f"  {handed.command}")


def _show(found: list[Combination]) -> None:
    columns = [
        Column(title="the runtime with"),
        Column(title="library"),
        Column(title="held-out tasks", align="right"),
        Column(title="right", align="right"),
        Column(title="share", align="right"),
    ]
    rows = [
        (
            "trained adapter" if one.is_trained else "model as it was",
            "evolved" if one.is_evolved else "original",
            one.report.total.attempts,
            one.report.total.passed,
            f"{one.accuracy:.0%}",
        )
        for one in found
    ]
    print_table(columns, rows)
