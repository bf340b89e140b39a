"""What commands show: a dry run, the steps under way, what came of a run."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit.cli.output import Column, LineProgress, print_line, print_table, say
from agentkit.errors import MissingExtraError
from agentkit.evaluation import EvaluationReport, environment_from
from agentkit.models.base import resolve_model
from agentkit_training.coevolution.records import NOTHING_LEARNED
from agentkit_training.coevolution.tasks import step_count
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.distributed.ranks import Alone
from agentkit_training.fine_tuning.solutions import solutions_of
from agentkit_training.fine_tuning.teaching import (
    left_out_notes,
    left_out_rows,
    nothing_to_teach,
)
from agentkit_training.fine_tuning.training import SftSettings
from agentkit_training.jobs.evaluate import close_model, handover_of
from agentkit_training.jobs.running import HANDOVER, check_engine, check_fine_tuning
from agentkit_training.recipes import Recipe, load_recipe, recipes
from agentkit_training.retriever import RetrieverReport
from agentkit_training.runs import RunDirectory, StepRecord
from agentkit_training.tasks.loading import load_tasks_for_training, out_of_reach
from agentkit_training.tasks.splits import TaskSplits
from agentkit_training.toolace.difficulty import Solutions, gold_answers

if TYPE_CHECKING:
    from agentkit_training.export.handover import Handover

_SWITCHES = ("evolution", "feedback", "evidence", "composites", "interface", "weighting")
_USES = {"train": "train on", "validation": "choose by", "test": "report"}


def counted(number: int, word: str, words: str = "") -> str:
    """So many of something, in words.

    Example:
        >>> counted(1, "task"), counted(2, "process", "processes")
        ('1 task', '2 processes')
    """
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def show_dry_run(config: SftConfig | CoevolveConfig, *, processes: int) -> None:
    """Say what a run would do; no weights are loaded.

    Args:
        config: The run.
        processes: How many were started.

    Raises:
        UsageError: There is nothing to teach; it says why.
    """
    if isinstance(config, SftConfig):
        check_fine_tuning(config, processes=processes)
    else:
        try:
            check_engine(config, Alone(world=processes))
        except MissingExtraError as error:  # it may be there where the run will be
            say(f"Warning: {error}")
    parts, policy = load_tasks_for_training(config.tasks), config.policy
    sizes = ", ".join(f"{size} to {_USES[name]}" for name, size in parts.sizes.items())
    print_line(f"{parts.train.name}: {sizes}; {counted(len(parts.train.definitions), 'tool')}.")
    if told := left_out_rows(parts, config.tasks):
        print_line(f"{told}.")
    if told := out_of_reach(parts, config.asking.max_steps):
        say(f"Warning: {told}")
    trained = "all weights" if policy.lora is None else f"adapters of rank {policy.lora.rank}"
    where = f"{policy.device}, precision {policy.precision}"
    print_line(f"{policy.weights} on {where}: trains {trained}.")
    if isinstance(config, SftConfig):
        _show_tuning(config, parts)
    else:
        _show_steps(config, parts)
    idle = 0 if isinstance(config, SftConfig) else processes - config.coevolution.tasks_per_step
    if idle > 0:
        say(
            f"Warning: {idle} of {processes} processes would make no rollouts; raise "
            "coevolution.tasks_per_step"
        )


def _show_tuning(config: SftConfig, parts: TaskSplits) -> None:
    """What a run of ``sft`` would teach."""
    known = _solutions(config, parts, no_call=config.no_call, rounds=config.toolace is not None)
    wanted = config.toolace
    if wanted is None:
        print_line(f"Teaches {_told(known)}: {_steps(known, config.sft)}.")
    else:
        print_line(
            f"Up to {counted(wanted.rounds, 'round')} on {_told(known)}; {wanted.attempts} samples "
            f"of each tell which are taught, {config.sft.batch_size} in a step."
        )
    _show_left_out(known)


def _show_steps(config: CoevolveConfig, parts: TaskSplits) -> None:
    """What a run of ``grpo`` or ``coevolve`` would do."""
    coevolution, tasks, engine = config.coevolution, parts.train.tasks, config.engine
    for model in config.asked_models.values():
        close_model(resolve_model(model))
    if config.cold_start is not None:
        known = _solutions(config, parts)
        print_line(f"Cold start: teaches {_told(known)}, {_steps(known, config.cold_start)}.")
        _show_left_out(known)
    most = min(coevolution.tasks_per_step, len(tasks)) * coevolution.group_size
    steps, limit = step_count(tasks, coevolution), config.policy.answer_tokens
    print_line(
        f"{counted(steps, 'step')} of up to {most} rollouts of up to {limit} tokens a turn: at "
        f"most {steps * most * limit:,} tokens are written for one turn each."
    )
    on = [name for name in _SWITCHES if getattr(coevolution, name)]
    print_line(f"What learns beside the policy: {', '.join(on) or 'nothing (plain GRPO)'}.")
    by_vllm = ", rollouts written by vLLM" if engine.vllm is not None else ""
    frozen = "none, the policy is frozen"
    print_line(f"Engine: {frozen if config.frozen else engine.name + by_vllm}.")


def _solutions(
    config: SftConfig | CoevolveConfig,
    parts: TaskSplits,
    *,
    no_call: str = "",
    rounds: bool = False,
) -> Solutions:
    """What the training tasks would be taught with; as far as their sources know."""
    known = (
        gold_answers(parts.train, no_call=no_call)
        if rounds
        else solutions_of(
            parts.train,
            config.tasks,
            no_call=no_call,
            prompting=config.policy.prompting(),
            settings=config.asked,
        )
    )
    if not (known.answers or known.trajectories):
        raise nothing_to_teach(parts.train, known.left_out)
    return known


def _show_left_out(known: Solutions) -> None:
    for note in left_out_notes(known.left_out):
        print_line(f"{note}.")


def _told(known: Solutions) -> str:
    """How many solutions there are of each kind."""
    answers, longer = len(known.answers), len(known.trajectories)
    told = [counted(answers, "answer")] if answers else []
    told += [counted(longer, "trajectory", "trajectories")] if longer else []
    return " and ".join(told)


def _steps(known: Solutions, settings: SftSettings) -> str:
    count = len(known.answers) + len(known.trajectories)
    steps = -(-count // settings.batch_size) * settings.epochs
    return f"{counted(steps, 'step')} of up to {settings.batch_size}"


_SHOWN = ("loss", "reward", "passed", "accuracy", "weight", "library/version", "library/tools")
_MOST_LABELS = 3


@contextmanager
def shown_steps(*, steps: int | None = None) -> Iterator[Callable[[StepRecord], None]]:
    """A line for each record; on a terminal the newest figures take the place of the last.

    Args:
        steps: How many training steps are expected, where records do not say; None when that is
            not known.
    """
    told: dict[str, LineProgress] = {}
    said: set[tuple[str, str]] = set()

    def tell(record: StepRecord) -> None:
        for note in record.notes:
            if (record.phase, note) not in said:  # the log has it with each of its steps
                say(f"{record.phase}, step {record.step}: {note}")
            said.add((record.phase, note))
        if "accuracy" in record.figures:
            say(_line(record))
        elif record.figures:
            if record.phase not in told:
                told[record.phase] = LineProgress(record.phase)
            total = max(record.steps or steps or 0, record.step + 1)
            told[record.phase](record.step + 1, total, _figures(record))

    yield tell


def show_result(run: RunDirectory) -> None:
    """First and last measurement of each held-out part, and where everything lies."""
    records = list(run.records())
    rows = []
    for phase in ("validation", "test"):
        if found := [one.figures for one in records if one.phase == phase]:
            shares = (f"{one['accuracy']:.1%}" for one in (found[0], found[-1]))
            rows.append((phase, f"{found[-1]['tasks']:.0f}", *shares))
    if rows:
        names = ("count", "before", "after")
        columns = [Column(title=name, align="right") for name in names]
        print_table([Column(title="held-out tasks"), *columns], rows)
    taken = [one for one in records if "skipped" in one.figures]
    lost = sum(any(note.startswith(NOTHING_LEARNED) for note in one.notes) for one in taken)
    if lost:
        say(f"In {lost} of {len(taken)} steps nothing was learned.")
    say(f"Everything about the run: {run.path}")
    if (run.path / HANDOVER).is_dir():
        show_handover(handover_of(run), run)


def show_handover(handed: Handover, run: RunDirectory) -> None:
    """The command that asks what a run handed over, with the tools that its tasks are about."""
    target = run.settings["tasks"].get("environment")
    own = ""
    if target and not inspect.isclass(environment_from(target)):  # a world is made for each task
        own = f" --tools {shlex.quote(target)}"
    say(f"Ask it with:\n  {handed.command}{own}")


def show_combinations(found: Iterable[tuple[bool, bool, EvaluationReport]]) -> None:
    """How each model did with each library: trained or not, evolved or not."""
    rows = [
        (
            "trained adapter" if is_trained else "model as it was",
            "evolved" if is_evolved else "original",
            report.total.attempts,
            report.total.passed,
            f"{report.total.passed / max(1, report.total.attempts):.0%}",
        )
        for is_trained, is_evolved, report in found
    ]
    columns = [Column(title="the runtime with"), Column(title="library")]
    columns += [Column(title=name, align="right") for name in ("held-out tasks", "right", "share")]
    print_table(columns, rows)


def show_recipes() -> None:
    """The recipes, a line each."""
    found = [(name, load_recipe(name)) for name in recipes()]
    columns = [Column(title="recipe"), Column(title="table"), Column(title="what it has")]
    print_table(columns, [(name, one.paper, one.figure) for name, one in found])


def show_recipe(recipe: Recipe, folder: Path | None) -> None:
    """What is not as in the paper, how long it takes, and the table with what has ended of ours.

    Args:
        recipe: The recipe.
        folder: Of its runs; None where there are none.
    """
    if folder is None:
        print_line(f"{recipe.paper}. Not as in the paper:")
        for one in recipe.substitutes:
            print_line(f"* {one}")
        times = "; ".join(f"{machine}: {time}" for machine, time in recipe.time.items())
        print_line(f"Estimated, not measured: {times}.")
    rows = [
        (row.name, f"{row.paper:.1f}", "" if ours is None else f"{ours:.1f}", f"{tasks or ''}")
        for row, ours, tasks in recipe.results(folder or Path("none"))
    ]
    columns = [Column(title=recipe.figure)]
    columns += [Column(title=name, align="right") for name in ("paper", "ours", "tasks")]
    print_table(columns, rows)


def show_recall(report: RetrieverReport) -> None:
    """Recall before and after training a retriever, and what became of it."""
    figures = report.figures
    rows = [
        (told, str(at), *(f"{figures[f'{kind}.{when}@{at}']:.3f}" for when in ("before", "after")))
        for kind, told in (
            ("held_back", "requests held back"),
            ("bystanders", "tools that learned nothing"),
        )
        for at in (5, 32)
        if f"{kind}.after@{at}" in figures
    ]
    print_table(["measured on", "recall at", "before", "after"], rows)
    if report.why:
        print_line(f"\nNothing was written: {report.why}.")


def _line(record: StepRecord) -> str:
    share, count = record.figures["accuracy"], record.figures["tasks"]
    if record.phase in {"validation", "test"}:
        when = f"{record.phase}, after {counted(record.step, 'step')}"
    else:  # such as a cold start, which is over when it is measured
        when = f"after the {record.phase}"
    pass_ = "task passes" if count == 1 else "tasks pass"
    return f"{when}: {share:.1%} of {count:.0f} {pass_}"


def _figures(record: StepRecord) -> str:
    told = [
        f"{name.removeprefix('library/')} {record.figures[name]:.3g}"
        for name in _SHOWN
        if name in record.figures
    ]
    labels = sorted(record.labels.items(), key=lambda one: -one[1])[:_MOST_LABELS]
    told += [f"{label} {count}" for label, count in labels]
    return ", ".join(told)
