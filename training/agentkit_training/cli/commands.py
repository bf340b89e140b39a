"""The commands, one function each."""

from __future__ import annotations

import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentkit.cli.boundary import EXIT_INTERRUPTED
from agentkit.cli.evaluate_report import print_evaluation
from agentkit.cli.output import print_json, print_text, say
from agentkit.errors import UsageError
from agentkit.evaluation.results.pages import report_html
from agentkit.models.base import resolve_model
from agentkit_training.cli.show import (
    show_combinations,
    show_dry_run,
    show_handover,
    show_plan,
    show_result,
    shown_steps,
)
from agentkit_training.coevolution.settings import ablation as named_ablation
from agentkit_training.config.jobs import (
    CoevolveConfig,
    EvaluationConfig,
    SftConfig,
    kind_of_keys,
    read_run,
)
from agentkit_training.config.reading import keys_of, parse_config, read_config
from agentkit_training.distributed.ranks import (
    Ranks,
    company,
    has_the_word,
    joined_ranks,
    left_ranks,
    was_interrupted,
)
from agentkit_training.engines.verl.export import export_verl
from agentkit_training.export.manifest import library_of
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import (
    Trained,
    combinations,
    evaluate_job,
    export_job,
    handover_of,
    trained_by,
)
from agentkit_training.jobs.running import REPORT, check_fine_tuning
from agentkit_training.jobs.sft import sft_job
from agentkit_training.plan import plan_of
from agentkit_training.report import run_html
from agentkit_training.runs import PROVENANCE, Listener, RunDirectory, ignore
from agentkit_training.tasks.loading import load_tasks_for_training

if TYPE_CHECKING:
    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_NAME, _DEMO = "agentkit-train", "demo.yaml"
_SECONDS_TO_TELL = 3.0
"""How long a process that ends without a word leaves the one that has it: ``torchrun`` ends all
as soon as one is gone."""


class _Page(click.Path):
    """A file that can be written at the end, as its folder is there."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file.

        Raises:
            click.BadParameter: It is a folder, or its own folder is absent or can not be written.
        """
        page = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not os.access(page.parent, os.W_OK):
            told = f"the folder {page.parent} is not there or can not be written; give another"
            self.fail(told, param, ctx)
        return page


_FOLDER = click.Path(path_type=Path, file_okay=False)
_config = click.argument("config", type=click.Path(path_type=Path))
_changes = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the configuration, such as engine.optimizer.learning_rate=1e-5.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_resume = click.option("--resume", is_flag=True, help="Go on with the run that is in the folder.")


def _output(told: str, **more: Any) -> Callable[[Decorated], Decorated]:
    return click.option("--output", "folder", type=_FOLDER, help=told, **more)


def _run_options(command: Decorated) -> Decorated:
    """The configuration, the folder of the run, changes of single keys, resuming, a dry run."""
    dry_run = click.option(
        "--dry-run",
        is_flag=True,
        help="Build everything but the weights, say what would be done, and stop.",
    )
    for decorate in (dry_run, _resume, _changes, _output("Folder of the run.", required=True)):
        command = decorate(command)
    return _config(command)


def _command_line() -> str:
    """What was typed, for the record of the run; with how many processes, where there are more."""
    name = Path(sys.argv[0]).name
    typed = shlex.join([_NAME if name.endswith(".py") else name, *sys.argv[1:]])
    _, world = company()
    return typed if world == 1 else f"{typed}  # in {world} processes"


@click.command(
    epilog="""\b
Examples:
  agentkit-train sft examples/sft.yaml --output runs/sft
  agentkit-train sft examples/sft.yaml --output runs/sft --resume
  agentkit-train sft examples/sft.yaml --output runs/sft2 --set sft.epochs=2"""
)
@_run_options
def sft(*, config: Path, changes: tuple[str, ...], **given: Any) -> None:
    """Fine-tune on the gold answers of tasks, as the file CONFIG says.

    With a section 'toolace' the tasks are selected in rounds by what the policy can learn from,
    and self-refine samples are added (ToolACE-R).
    """
    with _told_once():
        _run(read_run(config, SftConfig, changes=changes), **given)


@click.command(
    epilog="""\b
Examples:
  agentkit-train coevolve examples/coevolve.yaml --output runs/loans
  agentkit-train coevolve examples/coevolve.yaml --output runs/tooldna --ablation tooldna
  agentkit-train coevolve examples/coevolve.yaml --output runs/loans --resume"""
)
@_run_options
@click.option("--ablation", help="A named configuration of the papers, such as seal-no-weighting.")
def coevolve(*, config: Path, changes: tuple[str, ...], ablation: str | None, **given: Any) -> None:
    """Train the policy while its tools' texts and their library learn, as CONFIG says.

    Each switch of the section 'coevolution' is one mechanism of a paper; --ablation sets all of
    them at once.
    """
    with _told_once():
        wanted = read_run(config, CoevolveConfig, changes=changes)
        if ablation is not None:
            wanted = replace(wanted, coevolution=named_ablation(ablation, wanted.coevolution))
        _run(wanted, **given)


@click.command(
    epilog="""\b
Examples:
  agentkit-train grpo examples/grpo.yaml --output runs/grpo
  agentkit-train grpo examples/grpo.yaml --output runs/trl --set engine.name=trl"""
)
@_run_options
def grpo(*, config: Path, changes: tuple[str, ...], **given: Any) -> None:
    """Train the policy with rewards alone, as CONFIG says; the library stays as it is.

    Weights by diagnosis and the training interface (SEAL) may be on; what changes the library
    belongs to 'coevolve'.
    """
    with _told_once():
        wanted = read_run(config, CoevolveConfig, changes=changes)
        if wanted.coevolution.changes_library:
            raise UsageError(
                f"{config} has a switch on that changes the library; use agentkit-train coevolve, "
                "or turn evolution, feedback, evidence and composites off"
            )
        _run(wanted, **given)


def _run(config: SftConfig | CoevolveConfig, *, folder: Path, resume: bool, dry_run: bool) -> None:
    """Run a job in all processes; rank 0 shows its records and what came of it."""
    if dry_run:
        rank, world = company()
        if rank == 0:
            show_dry_run(config, processes=world)
        return
    ranks = joined_ranks(on_cpu=config.policy.device == "cpu")
    if ranks.rank:
        _quiet()
    steps = None if isinstance(config, SftConfig) else config.coevolution.steps
    with nullcontext(ignore) if ranks.rank else shown_steps(steps=steps) as tell:
        run = _job(config, folder, resumes=resume, listen=tell, ranks=ranks)
    if ranks.rank == 0:
        show_result(run)
    left_ranks()  # not after an error: NCCL would wait for those that are gone


def _job(
    config: SftConfig | CoevolveConfig,
    folder: Path,
    *,
    resumes: bool,
    listen: Listener,
    ranks: Ranks,
) -> RunDirectory:
    given: dict[str, Any] = {"command": _command_line(), "resumes": resumes, "listen": listen}
    if isinstance(config, SftConfig):
        return sft_job(config, folder, ranks=ranks, **given)
    return coevolve_job(config, folder, ranks=ranks, **given)


def _quiet() -> None:
    """Keep what libraries say to rank 0, which says it as well."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    warnings.simplefilter("ignore")


@contextmanager
def _told_once() -> Iterator[None]:
    """Let one process tell of an error, the first that failed by itself; the others end quietly.

    Of a run that Ctrl-C ended the folder is told as well, and how to go on.
    """
    rank, world = company()
    try:
        yield
    except click.exceptions.Exit:
        raise
    except BaseException as error:
        if was_interrupted(error):
            _tell_where(rank)
            if rank:
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
            raise KeyboardInterrupt from error
        if world > 1 and not has_the_word(error):
            time.sleep(_SECONDS_TO_TELL)
            raise click.exceptions.Exit(1) from None
        if rank:
            say(f"In process {rank} of {world}:")
        raise


def _tell_where(rank: int) -> None:
    """Say in which folder the run is that Ctrl-C ended, where there is one, and how it goes on."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    folder: Path | None = given.get("folder") if "resume" in given else None
    if folder is not None and not rank and (folder / PROVENANCE).is_file():
        say(f"\nThe run is in {folder}; give the same command with --resume to go on with it.")


@click.command(
    epilog="""\b
Examples:
  agentkit-train demo
  agentkit-train demo --output runs/demo --set coevolution.steps=2"""
)
@_output("Folder of the run.", default="runs/demo", show_default=True)
@_changes
@_resume
@_told_once()
def demo(folder: Path, changes: tuple[str, ...], resume: bool) -> None:  # noqa: FBT001 - click
    """Train a small real model on a CPU while its library learns, then ask the runtime.

    The tools refuse what their definitions do not say. The policy is fine-tuned on a few gold
    answers and trained with rewards; what the tools refuse becomes rules of the library, through
    the Tool Manager. At the end the runtime answers held-out questions with either model and
    either library.
    """
    text = resources.files("agentkit_training").joinpath(_DEMO).read_text(encoding="utf-8")
    wanted = parse_config(text, CoevolveConfig, name=_DEMO, changes=changes)
    begun = time.monotonic()
    with shown_steps(steps=wanted.coevolution.steps) as tell:
        run = coevolve_job(wanted, folder, command=_command_line(), resumes=resume, listen=tell)
    say(f"Trained in {time.monotonic() - begun:.0f} s. Now the runtime answers, by itself:")
    handed = handover_of(run)
    test = load_tasks_for_training(wanted.tasks).test
    show_combinations(list(combinations(handed, test, wanted.asking.settings(), tell=say)))
    print_text(f"The whole took {time.monotonic() - begun:.0f} s. The run: {run.path}, with its")
    print_text("curves in report.html. Ask the trained model with the evolved library:")
    click.echo(f"  {handed.command}")


@click.command(
    epilog="""\b
Examples:
  agentkit-train evaluate examples/coevolve.yaml
  agentkit-train evaluate examples/coevolve.yaml --run runs/loans
  agentkit-train evaluate examples/coevolve.yaml --model openai:gpt-4o-mini --attempts 4"""
)
@_config
@click.option(
    "--run",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Ask what a finished run left: its adapter or weights, and its library.",
)
@click.option("--model", help="Another model of the runtime, such as openai:gpt-4o-mini.")
@click.option("--library", type=click.Path(path_type=Path, exists=True), help="An artifact.")
@click.option(
    "--part",
    type=click.Choice(["train", "validation", "test"]),
    default="test",
    show_default=True,
    help="Which tasks to ask.",
)
@click.option("--attempts", default=1, show_default=True, help="Tries at each task.")
@click.option("--temperature", default=0.0, show_default=True)
@click.option("--html", type=_Page(), help="Write the report as a page, too.")
@_as_json
@_changes
def evaluate(config: Path, changes: tuple[str, ...], **given: Any) -> None:
    """Measure a model on the tasks of the file CONFIG, as training measures them.

    Without --run and --model the policy of CONFIG answers as it is before training. Accuracy is
    pass@1 over the attempts; tokens, calls and failure labels stand beside it. Give --run with the
    run's own config.yaml: another seed may ask what it has learned from.
    """
    wanted = read_config(config, EvaluationConfig, changes=changes, ignores_rest=True)
    answering = _answering(wanted, given)
    report = evaluate_job(
        answering.model,
        getattr(load_tasks_for_training(wanted.tasks), given["part"]),
        replace(wanted.asking.settings(), tools=answering.tools),
        library=library_of(answering.library),
        attempts=given["attempts"],
        temperature=given["temperature"],
        command=_command_line(),
    )
    if given["html"]:
        given["html"].write_text(report_html(report), encoding="utf-8")
        say(f"Wrote {given['html']}")
    if given["as_json"]:
        print_json(report.to_json())
    else:
        print_evaluation(report)


def _answering(wanted: EvaluationConfig, given: dict[str, Any]) -> Trained:
    """Who answers, the artifact with the texts of the tools, and which tools are offered."""
    if given["run"] and given["model"]:
        raise UsageError("--run and --model both say who answers; give one")
    own = Path(wanted.library) if wanted.library else None
    if given["run"]:
        found = trained_by(RunDirectory(given["run"]), wanted.policy)
    else:
        named = given["model"]
        model = resolve_model(named) if named else wanted.policy.model(wanted.policy.load())
        found = Trained(model=model, library=None, tools=wanted.coevolution.tools)
    return replace(found, library=given["library"] or found.library or own)


@click.command(
    epilog="""\b
Examples:
  agentkit-train export runs/loans --output loans
  agentkit-train export runs/loans --output loans --precision f16"""
)
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@_output("Where to write the hand-over.", required=True)
@click.option(
    "--precision",
    type=click.Choice(["f32", "f16"]),
    default="f32",
    show_default=True,
    help="Of the adapter's numbers.",
)
def export(run: Path, folder: Path, precision: Any) -> None:
    """Write what RUN has learned so far as the runtime takes it: adapter or weights, and library.

    A run that ended has its hand-over already, in 'handover'; this makes one from the newest
    checkpoint of a run that is under way, or with another precision.
    """
    if folder.resolve().is_relative_to((run / "checkpoints").resolve()):
        raise UsageError(f"{folder} lies among the checkpoints of the run; choose another folder")
    handed = export_job(run, folder, adapter_precision=precision)
    say(f"Wrote {handed.folder}.")
    show_handover(handed, RunDirectory(run))


@click.command(
    epilog="""\b
Examples:
  agentkit-train report runs/loans
  agentkit-train report runs/loans --output loans.html"""
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=_Page(), help="Where to write it; report.html in RUN.")
def report(run: Path, output: Path | None) -> None:
    """Draw the curves of RUN, the folder of a run, as one HTML page.

    A run that is under way, or was broken off, shows what there is.
    """
    directory = RunDirectory(run)
    target = output or directory.path / REPORT
    target.write_text(run_html(directory), encoding="utf-8")
    say(f"Wrote {target}")


@click.command(
    epilog="""\b
Examples:
  agentkit-train plan examples/one_gpu.yaml
  agentkit-train plan run.yaml --devices 8 --device-gib 80"""
)
@_config
@_changes
@click.option("--devices", type=click.IntRange(min=1), help="As the configuration has it.")
@click.option("--device-gib", type=float, help="Memory of a device: does it fit?")
@_as_json
def plan(
    *,
    config: Path,
    changes: tuple[str, ...],
    devices: int | None,
    device_gib: float | None,
    as_json: bool,
) -> None:
    """Reckon what a run needs on each device, before anything is loaded.

    The figures are closed forms, good to a quarter or so. CONFIG is that of 'sft', 'grpo' or
    'coevolve', and planned as it stands.
    """
    kind = kind_of_keys(keys_of(config, changes=changes)) or CoevolveConfig
    wanted: SftConfig | CoevolveConfig = read_config(config, kind, changes=changes)
    if device_gib is not None:
        wanted = replace(wanted, hardware=replace(wanted.hardware, device_gib=device_gib))
    processes = devices or wanted.hardware.processes
    if isinstance(wanted, SftConfig):
        check_fine_tuning(wanted, processes=processes)
    found = plan_of(wanted, load_tasks_for_training(wanted.tasks), processes=processes)
    if as_json:
        peak = found.peak if found.bytes else None
        print_json({**vars(found), "bytes": dict(found.bytes), "peak": peak, "fits": found.fits})
    else:
        show_plan(found)


@click.command(
    epilog="""\b
Examples:
  agentkit-train verl examples/cluster_verl.yaml --output /shared/loans
  agentkit-train verl run.yaml --output /shared/loans --set hardware.machines=4"""
)
@_config
@_output("Where to write; every machine must see it under this path.", required=True)
@_changes
def verl(config: Path, folder: Path, changes: tuple[str, ...]) -> None:
    """Write what verl is started with, for clusters that run it, as CONFIG says.

    CONFIG is that of 'grpo': tasks, reward, objective and optimiser are verl's then. What learns
    beside the policy does not run there; all of it that is on is named. Neither verl nor torch is
    loaded. The last line printed starts the training.
    """
    done = export_verl(read_run(config, CoevolveConfig, changes=changes), folder)
    sizes = ", ".join(f"{count} {name}" for name, count in done.rows.items())
    say(f"Wrote {done.folder}: {sizes} tasks.")
    click.echo(shlex.join(done.command))
