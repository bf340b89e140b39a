"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentkit.cli.output import Column, print_table, print_text, say
from agentkit.errors import UsageError
from agentkit_training.cli.console import PAGE, shown_steps
from agentkit_training.cli.dry_run import show_tuning
from agentkit_training.cli.processes import shown_run, told_once
from agentkit_training.distributed.ranks import company
from agentkit_training.report.report import run_html
from agentkit_training.runs.directory import RunDirectory

if TYPE_CHECKING:
    from agentkit_training.jobs.runtime import Combination


_NAME = "agentkit-train"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def run_options(command: Decorated) -> Decorated:
    """The configuration, the folder of the run, changes of single keys, resuming, a dry run."""
    for decorate in (
        click.option(
            "--dry-run",
            is_flag=True,
            help="Build everything but the weights, say what would be done, and stop.",
        ),
        click.option("--resume", is_flag=True, help="Go on with the run that is in the folder."),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="KEY=VALUE",
            help="Change a key of the configuration, such as engine.optimizer.learning_rate=1e-5.",
        ),
        click.option(
            "--output",
            "folder",
            required=True,
            type=click.Path(path_type=Path, file_okay=False),
            help="Folder of the run.",
        ),
        click.argument("config", type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def command_line() -> str:
    """What was typed, for the record of the run; with how many processes, where there are more."""
    name = Path(sys.argv[0]).name
    typed = shlex.join([_NAME if name.endswith(".py") else name, *sys.argv[1:]])
    _, world = company()
    return typed if world == 1 else f"{typed}  # in {world} processes"


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
    from agentkit_training.cli.console import show_handover
    from agentkit_training.jobs.export import export_job
    from agentkit_training.runs.directory import RunDirectory

    if folder.resolve().is_relative_to((run / "checkpoints").resolve()):
        raise UsageError(f"{folder} lies among the checkpoints of the run; choose another folder")
    handed = export_job(run, folder, adapter_precision="f16" if precision == "f16" else "f32")
    say(f"Wrote {handed.folder}.")
    show_handover(handed, RunDirectory(run))


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
    from agentkit_training.jobs.runtime import combinations, handover_of
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
