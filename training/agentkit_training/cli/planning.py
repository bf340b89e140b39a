"""How a plan is shown: what a step does, what each device holds, whether it fits."""

from __future__ import annotations

from typing import Any

from agentkit.cli.output import Column, print_table, print_text, say
from agentkit_training.plan.layout import Layout
from agentkit_training.plan.memory import (
    GIB,
    MemoryPlan,
    Setup,
    Workload,
    plan_memory,
    smaller,
)
from agentkit_training.plan.shape import ModelShape

_MOST_HALVINGS = 12
_ROOM = 0.9  # of a device's memory; the rest goes to kernels and fragments
_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "cache", "writer")


def fits(found: MemoryPlan, setup: Setup) -> bool | None:
    """Whether a plan fits its devices; None where their memory is not known."""
    if setup.device_gib is None:
        return None
    return found.peak <= _usable(setup.device_gib) * GIB


def fitting(shape: ModelShape, workload: Workload, setup: Setup) -> Workload:
    """The workload, made smaller until it fits; as it was when nothing helps."""
    tried = workload
    for _ in range(_MOST_HALVINGS):
        if fits(plan_memory(shape, tried, setup), setup) is not False:
            return tried
        tried = smaller(tried)
    return workload


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
        "checkpointing": workload.checkpointing,
        "written_tokens": workload.written_tokens,
        "read_tokens": workload.read_tokens,
    }


def show_memory(shape: ModelShape, workload: Workload, setup: Setup) -> None:
    """The tokens of a step, and a table of what each device holds and may hold."""
    found = plan_memory(shape, workload, setup)
    print_text(
        f"{shape.name}: {found.parameters / 1e6:,.0f} M weights, {found.trained / 1e6:,.0f} M of "
        f"them trained; a step writes up to {workload.written_tokens:,} tokens and reads up to "
        f"{workload.read_tokens:,}."
    )
    when = {"cache": "while rollouts are written", "writer": "vLLM"}
    rows = [
        (part, f"{getattr(found, part) / GIB:,.2f}", when.get(part, ""))
        for part in _PARTS
        if part != "writer" or found.writer
    ]
    rows.append(("at its highest", f"{found.peak / GIB:,.2f}", "generation and update in turn"))
    if setup.device_gib is not None:
        free = f"of {setup.device_gib:g}, {1 - _ROOM:.0%} kept free"
        rows.append(("usable", f"{_usable(setup.device_gib):,.2f}", free))
    columns = [Column(title="on each device"), Column(title="GiB", align="right"), Column(title="")]
    print_table(columns, rows)


def show_layout(layout: Layout) -> None:
    """What a configuration makes of its devices; a warning where that does not fit or idles."""
    workload, setup = layout.workload, layout.setup
    share = -(-workload.tasks // setup.devices) * workload.group_size
    print_text(
        f"{_counted(setup.devices, 'process', 'es')}, each on a device of its own: makes up to "
        f"{share} rollouts a step and reads {workload.rows_at_once} of them at once; prompts have "
        f"about {workload.prompt_tokens:,} tokens."
    )
    if layout.idle:
        say(
            f"Warning: with {_counted(workload.tasks, 'task', 's')} a step, {layout.idle} of "
            f"{setup.devices} processes make no rollouts; raise coevolution.tasks_per_step"
        )
    if layout.shape is None:
        print_text("Nothing tells the shape of the weights yet, and so no memory is reckoned.")
        return
    show_memory(layout.shape, workload, setup)
    if setup.device_gib is None:
        return
    found = plan_memory(layout.shape, workload, setup)
    if fits(found, setup):
        print_text(f"It fits into {setup.device_gib:g} GiB.")
        return
    say(
        f"Warning: it does not fit into {setup.device_gib:g} GiB: it needs "
        f"{found.peak / GIB:,.2f} GiB, and {_usable(setup.device_gib):,.2f} are usable, as "
        f"{1 - _ROOM:.0%} stay free for kernels and fragments; {_advice(layout)}"
    )


def _usable(device_gib: float) -> float:
    """What a run may hold of a device, in GiB."""
    return _ROOM * device_gib


def _advice(layout: Layout) -> str:
    """Which keys of the configuration would make it fit, without those that are set so already."""
    shape, workload, setup = layout.shape, layout.workload, layout.setup
    assert shape is not None  # a plan was made
    less = fitting(shape, workload, setup)
    if less == workload:
        ways = [] if setup.lora_rank else ["policy.lora"]
        ways += ["engine.sharding: fsdp"] if setup.sharding == "none" else []
        return f"try {' or '.join([*ways, 'more devices'])}"
    ways = [] if less.rows_at_once == workload.rows_at_once else [_fewer_rows(less, setup)]
    if less.checkpointing and not workload.checkpointing:
        ways.append("engine.gradient_checkpointing: true")
    return f"try {' and '.join(ways)}"


def _fewer_rows(less: Workload, setup: Setup) -> str:
    """The key with which a process reads as few rows at once as a smaller workload has."""
    if less.packed:
        tokens = less.prompt_tokens + less.rows_at_once * less.completion_tokens
        return f"engine.max_tokens: {tokens}"
    share = -(-less.tasks // setup.devices) * less.group_size
    return f"engine.parts: {-(-share // less.rows_at_once)}"


def _counted(number: int, word: str, ending: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else ending)
