"""``agentkit-train evaluate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentkit_training.cli.commands import command_line
from agentkit_training.cli.console import PAGE

if TYPE_CHECKING:
    from agentkit.evaluation import Benchmark
    from agentkit_training.config.sections import EvaluationConfig
    from agentkit_training.jobs.runtime import Trained
    from agentkit_training.tasks.loading import TaskSpec


@click.command(
    epilog="""\b
Examples:
  agentkit-train evaluate examples/coevolve.yaml
  agentkit-train evaluate examples/coevolve.yaml --run runs/loans
  agentkit-train evaluate examples/coevolve.yaml --model openai:gpt-4o-mini --attempts 4"""
)
@click.argument("config", type=click.Path(path_type=Path))
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
@click.option("--html", type=PAGE, help="Write the report as a page, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key.")
def evaluate(config: Path, changes: tuple[str, ...], **given: Any) -> None:
    """Measure a model on the tasks of the file CONFIG, as training measures them.

    Without --run and --model the policy of CONFIG answers as it is before training. Accuracy is
    pass@1 over the attempts; tokens, calls and failure labels stand beside it.
    """
    from agentkit.cli.evaluate_report import print_evaluation
    from agentkit.cli.output import print_json, say
    from agentkit.evaluation.results.page import report_html
    from agentkit_training.config.reading import read_config
    from agentkit_training.config.sections import EvaluationConfig
    from agentkit_training.jobs.ending import library_of
    from agentkit_training.jobs.export import Examination, evaluate_job
    from agentkit_training.tasks.loading import load_tasks_for_training

    wanted = read_config(config, EvaluationConfig, changes=changes, ignores_rest=True)
    answering = _answering(wanted, given)
    tasks = getattr(load_tasks_for_training(wanted.tasks), given["part"])
    if given["run"] and given["part"] != "train":
        _warn_of_known(given["run"], tasks, wanted.tasks)
    asked = Examination(
        benchmark=tasks,
        library=library_of(answering.library),
        settings=replace(wanted.asking.settings(), tools=answering.tools),
        attempts=given["attempts"],
        temperature=given["temperature"],
    )
    report = evaluate_job(answering.model, asked, command=command_line())
    if given["html"]:
        given["html"].write_text(report_html(report), encoding="utf-8")
        say(f"Wrote {given['html']}")
    if given["as_json"]:
        print_json(report.to_json())
    else:
        print_evaluation(report)


def _warn_of_known(folder: Path, tasks: Benchmark, spec: TaskSpec) -> None:
    """Say how many held-out tasks the run has learned from."""
    from agentkit.cli.output import say
    from agentkit_training.jobs.runtime import learned_from
    from agentkit_training.runs.directory import RunDirectory

    if count := learned_from(RunDirectory(folder), tasks, spec):
        say(
            f"Warning: {folder} was trained on {count} of these {len(tasks.tasks)} tasks, so that "
            f"it may only remember them. Ask {folder}/config.yaml, whose seed and shares are the "
            "run's, or tasks.seed of that file"
        )


def _answering(wanted: EvaluationConfig, given: dict[str, Any]) -> Trained:
    """Who answers, the artifact with the texts of the tools, and which tools are offered."""
    from agentkit.errors import UsageError
    from agentkit.models.resolve import resolve_model
    from agentkit_training.jobs.runtime import Trained, trained_by
    from agentkit_training.runs.directory import RunDirectory

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
