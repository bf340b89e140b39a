"""What a command shows while a run goes on, and at its end."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentkit.cli.output import Column, print_table, say
from agentkit_training.coevolution.records import NOTHING_LEARNED
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.records import StepRecord

if TYPE_CHECKING:
    from agentkit_training.export.handover import Handover

_SHOWN = ("loss", "reward", "passed", "accuracy", "weight", "library/version", "library/tools")
_MOST_LABELS = 3


@contextmanager
def shown_steps(*, steps: int | None = None) -> Iterator[Callable[[StepRecord], None]]:
    """A line for each record, and on a terminal a bar with the newest figures.

    Args:
        steps: How many training steps are expected, where records do not say; None when that is
            not known.
    """
    from agentkit.cli.progress import progress

    with progress() as begin:
        bars: dict[str, Callable[..., None]] = {}
        said: set[tuple[str, str]] = set()

        def tell(record: StepRecord) -> None:
            for note in record.notes:
                if (record.phase, note) not in said:  # the log has it with each of its steps
                    say(f"{record.phase}, step {record.step}: {note}")
                said.add((record.phase, note))
            if "accuracy" in record.figures:
                say(_line(record))
                return
            if not record.figures:
                return
            if record.phase not in bars:
                bars[record.phase] = begin(record.phase)
            total = max(record.steps or steps or 0, record.step + 1)
            bars[record.phase](record.step + 1, total, _figures(record))

        yield tell


def show_result(run: RunDirectory) -> None:
    """First and last measurement of each held-out part, and where everything lies."""
    from agentkit_training.jobs.ending import HANDOVER
    from agentkit_training.jobs.trained import handover_of

    rows = []
    records = list(run.records())
    for phase in ("validation", "test"):
        found = [one for one in records if one.phase == phase]
        if found:
            first, last = found[0].figures, found[-1].figures
            rows.append(
                (
                    phase,
                    f"{last['tasks']:.0f}",
                    f"{first['accuracy']:.1%}",
                    f"{last['accuracy']:.1%}",
                )
            )
    columns = [
        Column(title="held-out tasks"),
        Column(title="count", align="right"),
        Column(title="before", align="right"),
        Column(title="after", align="right"),
    ]
    if rows:
        print_table(columns, rows)
    if told := _unlearned(records):
        say(told)
    say(f"Everything about the run: {run.path}")
    if (run.path / HANDOVER).is_dir():
        show_handover(handover_of(run), run)


def show_handover(handed: Handover, run: RunDirectory) -> None:
    """The command that asks what a run handed over, with the tools that its tasks are about."""
    say(f"Ask it with:\n  {handed.command}{_tools_option(run)}")


def _tools_option(run: RunDirectory) -> str:
    """The tools of a user's own tasks; a world of their own is made anew for each task."""
    from agentkit.evaluation import environment_from

    target = run.settings["tasks"].get("environment")
    if not target or inspect.isclass(environment_from(target)):
        return ""
    return f" --tools {shlex.quote(target)}"


def _unlearned(records: Sequence[StepRecord]) -> str:
    """In how many steps nothing was learned; empty for none."""
    taken = [one for one in records if "skipped" in one.figures]
    lost = sum(any(note.startswith(NOTHING_LEARNED) for note in one.notes) for one in taken)
    return f"In {lost} of {len(taken)} steps nothing was learned." if lost else ""


def _line(record: StepRecord) -> str:
    share, count = record.figures["accuracy"], record.figures["tasks"]
    if record.phase in {"validation", "test"}:
        when = f"{record.phase}, after {record.step} step{'s' if record.step != 1 else ''}"
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
