"""How a plan is shown: what a step does, what each device holds, whether it fits."""

from __future__ import annotations

from typing import Any

from agentkit.cli.output import Column, print_table, print_text, say
from agentkit_training.cli.advice import advised_keys, what_is_lacking
from agentkit_training.plan.fitting import KEPT_FREE, fits, usable
from agentkit_training.plan.layout import Layout
from agentkit_training.plan.memory import GIB, Setup, Workload, plan_memory
from agentkit_training.plan.shape import ModelShape

_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "cache", "writer")


def plan_record(shape: ModelShape, workload: Workload, setup: Setup) -> dict[str, Any]:
    """A plan as JSON data."""
    found = plan_memory(shape, workload, setup)
    return {
        "model": shape.name,
        "parameters": found.parameters,
        "trained": found.trained,
        "bytes": {part: getattr(found, part) for part in _PARTS},
        "peak_bytes": found.peak,
        "fits": fits(found, setup),
        "devices": setup.devices,
        "rows_at_once": workload.rows_at_once,
        "written_at_once": workload.written_at_once(setup.devices),
        "checkpointing": workload.checkpointing,
        "written_tokens": workload.written_tokens,
        "read_tokens": workload.read_tokens,
    }


def show_memory(shape: ModelShape, workload: Workload, setup: Setup) -> None:
    """The tokens of a step, and a table of what each device holds and may hold."""
    found = plan_memory(shape, workload, setup)
    print_text(
        f"{shape.name}: {found.parameters / 1e6:,.0f} M weights, {found.trained / 1e6:,.0f} M of "
        f"them trained; a step {_tokens(workload)}."
    )
    when = {"cache": "while rollouts are written", "writer": "vLLM"}
    rows = [
        (part, f"{getattr(found, part) / GIB:,.2f}", when.get(part, ""))
        for part in _PARTS
        if part != "writer" or found.writer
    ]
    rows.append(("at its highest", f"{found.peak / GIB:,.2f}", "generation and update in turn"))
    if setup.device_gib is not None:
        free = f"of {setup.device_gib:g}, {KEPT_FREE:.0%} kept free"
        rows.append(("usable", f"{usable(setup.device_gib):,.2f}", free))
    columns = [Column(title="on each device"), Column(title="GiB", align="right"), Column(title="")]
    print_table(columns, rows)


def show_layout(layout: Layout) -> None:
    """What a configuration makes of its devices; a warning where that does not fit or idles."""
    workload, setup = layout.workload, layout.setup
    share = -(-workload.tasks // setup.devices) * workload.group_size
    made = "reads up to {} examples" if workload.is_read else "makes up to {} rollouts"
    print_text(
        f"{counted(setup.devices, 'process', 'processes')}, each on a device of its own: "
        f"{made.format(share)} a step, {workload.rows_at_once} of them read at once; the longest "
        f"prompt has about {workload.prompt_tokens:,} tokens."
    )
    if layout.idle:
        say(
            f"Warning: with {counted(workload.tasks, 'task')} a step, {layout.idle} of "
            f"{setup.devices} processes make no rollouts; raise coevolution.tasks_per_step"
        )
    if layout.shape is None:
        print_text("Nothing tells the shape of the weights yet, and so no memory is reckoned.")
        return
    show_memory(layout.shape, workload, setup)
    if setup.device_gib is None:
        return
    if fits(plan_memory(layout.shape, workload, setup), setup):
        print_text(f"It fits into {setup.device_gib:g} GiB.")
    else:
        lacking = what_is_lacking(layout.shape, workload, setup)
        say(f"Warning: {lacking}; try {advised_keys(layout.shape, workload, setup)}")


def _tokens(workload: Workload) -> str:
    """What a step writes and reads, in words."""
    written = "" if workload.is_read else f"writes up to {workload.written_tokens:,} tokens and "
    return f"{written}reads up to {workload.read_tokens:,}{' tokens' if workload.is_read else ''}"


def counted(number: int, word: str, words: str = "") -> str:
    """So many of something, in words.

    Example:
        >>> counted(1, "task"), counted(2, "process", "processes")
        ('1 task', '2 processes')
    """
    return f"{number:,} {word if number == 1 else words or word + 's'}"
