"""``PAGE``: where a command writes a page, looked at before anything is done."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentkit.cli.output import Column, LineProgress, print_table, say
from agentkit_training.coevolution.records import NOTHING_LEARNED
from agentkit_training.plan.layout import KEPT_FREE, fitting, usable
from agentkit_training.plan.memory import GIB, Setup, Workload, plan_memory
from agentkit_training.plan.shape import ModelShape
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.records import StepRecord

if TYPE_CHECKING:
    from agentkit_training.export.handover import Handover


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
        folder = page.parent
        if not folder.is_dir():
            self.fail(
                f"the folder {folder} is not there; make it, or give a file in another", param, ctx
            )
        if not os.access(folder, os.W_OK):
            self.fail(f"the folder {folder} can not be written; give a file in another", param, ctx)
        return page


PAGE = _Page()
"""Type of an option that names the file of a page."""


def what_is_lacking(shape: ModelShape, workload: Workload, setup: Setup) -> str:
    """How much memory is needed of each device, and how much there is."""
    device_gib = setup.device_gib
    assert device_gib is not None  # or nothing could be lacking
    needed = plan_memory(shape, workload, setup).peak / GIB
    return (
        f"it does not fit into {device_gib:g} GiB: it needs {needed:,.2f} GiB, and "
        f"{usable(device_gib):,.2f} are usable, as {KEPT_FREE:.0%} stay free for kernels and "
        "fragments"
    )


def advised_keys(shape: ModelShape, workload: Workload, setup: Setup) -> str:
    """Which keys of the configuration would make it fit, without those that are set so already."""
    less = fitting(shape, workload, setup)
    if less == workload:
        return " or ".join([*_other_keys(workload, setup), "smaller weights"])
    ways = [] if less.rows_at_once == workload.rows_at_once else [_fewer_rows(less, setup)]
    if less.checkpointing and not workload.checkpointing:
        section = "sft" if less.is_read else "engine"
        ways.append(f"{section}.gradient_checkpointing: true")
    if less.most_written != workload.most_written:
        ways.append(f"policy.batch_size: {less.most_written}")
    return " and ".join(ways)


def _other_keys(workload: Workload, setup: Setup) -> Iterator[str]:
    """What needs less of each device where no smaller pieces do."""
    if not setup.lora_rank:
        yield "policy.lora"
    if setup.writer_gib:
        yield "a smaller engine.vllm.memory_share"
    if workload.is_read:
        return
    if setup.sharding != "none":
        yield "more devices"
    elif workload.packed:  # the lean engine
        yield "engine.name: trl with engine.sharding: fsdp and more devices"
    else:
        yield "engine.sharding: fsdp" + (" with more devices" if setup.devices == 1 else "")


def _fewer_rows(less: Workload, setup: Setup) -> str:
    """The key with which a process reads as few rows at once as a smaller workload has."""
    tokens = less.read_by(less.rows_at_once)
    if less.is_read:
        return f"sft.input_tokens: {tokens}"
    if less.packed:
        return f"engine.max_tokens: {tokens}"
    share = -(-less.tasks // setup.devices) * less.group_size
    return f"engine.parts: {-(-share // less.rows_at_once)}"


_SHOWN = ("loss", "reward", "passed", "accuracy", "weight", "library/version", "library/tools")
_MOST_LABELS = 3


@contextmanager
def shown_steps(*, steps: int | None = None) -> Iterator[Callable[[StepRecord], None]]:
    """A line for each record, and on a terminal a bar with the newest figures.

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
            return
        if not record.figures:
            return
        if record.phase not in told:
            told[record.phase] = LineProgress(record.phase)
        total = max(record.steps or steps or 0, record.step + 1)
        told[record.phase](record.step + 1, total, _figures(record))

    yield tell


def show_result(run: RunDirectory) -> None:
    """First and last measurement of each held-out part, and where everything lies."""
    from agentkit_training.jobs.ending import HANDOVER
    from agentkit_training.jobs.runtime import handover_of

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
