"""``agentkit-train plan``."""

from __future__ import annotations

from typing import Any

import click

from agentkit.cli.output import Column, print_json, print_table, print_text
from agentkit.errors import UsageError
from agentkit_training.plan.memory import GIB, MemoryPlan, Setup, Workload, plan_memory, smaller
from agentkit_training.plan.shape import SHAPES, ModelShape

_MOST_HALVINGS = 12
_ROOM = 0.9  # of a device's memory; the rest goes to kernels and fragments
_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "cache")


@click.command(
    epilog="""\b
Examples:
  agentkit-train plan --model qwen2.5-7b --device-gib 80
  agentkit-train plan --model qwen2.5-7b --devices 8 --sharding zero3 --device-gib 80
  agentkit-train plan --model smollm2-135m --lora 16 --prompt-tokens 400 --completion-tokens 64"""
)
@click.option("--model", required=True, help=f"One of {', '.join(SHAPES)}, or weights to look at.")
@click.option("--tasks", default=8, show_default=True, help="Tasks tried in a step.")
@click.option("--group-size", default=8, show_default=True, help="Rollouts of each task.")
@click.option("--prompt-tokens", default=1024, show_default=True)
@click.option("--completion-tokens", default=256, show_default=True)
@click.option("--rows", default=8, show_default=True, help="Rollouts that are read at once.")
@click.option("--padded", is_flag=True, help="Read a prompt in every row, as TRL does.")
@click.option("--precision", type=click.Choice(["bf16", "fp32"]), default="bf16", show_default=True)
@click.option("--lora", default=0, show_default=True, help="Rank of adapters; 0 trains all.")
@click.option("--master-weights", is_flag=True, help="Keep trained weights in fp32 as well.")
@click.option("--reference", is_flag=True, help="Keep a frozen copy for the KL divergence.")
@click.option("--devices", default=1, show_default=True)
@click.option(
    "--sharding",
    type=click.Choice(["none", "zero2", "zero3"]),
    default="none",
    show_default=True,
    help="What devices share; zero3 is also FSDP.",
)
@click.option("--device-gib", type=float, help="Memory of a device: does it fit?")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(**given: Any) -> None:
    """Reckon what a run needs on each device, before anything is loaded.

    The figures are closed forms, good to a quarter or so; what does not fit is made smaller in
    steps that train the same tokens: fewer rows at once, then activations computed again.
    """
    shape = _shape(given["model"])
    workload = Workload(
        tasks=given["tasks"],
        group_size=given["group_size"],
        prompt_tokens=given["prompt_tokens"],
        completion_tokens=given["completion_tokens"],
        packed=not given["padded"],
        rows_at_once=given["rows"],
    )
    setup = Setup(
        precision=given["precision"],
        lora_rank=given["lora"],
        has_master_weights=given["master_weights"],
        has_reference=given["reference"],
        devices=given["devices"],
        sharding=given["sharding"],
        device_gib=given["device_gib"],
    )
    workload = _fitting(shape, workload, setup)
    found = plan_memory(shape, workload, setup)
    if given["as_json"]:
        print_json(_record(shape, workload, setup, found))
    else:
        _show(shape, workload, setup, found)


def _shape(model: str) -> ModelShape:
    known = SHAPES.get(model.removeprefix("local:"))
    if known is not None:
        return known
    from transformers import AutoConfig

    from agentkit_training.plan.shape import shape_of

    try:
        return shape_of(AutoConfig.from_pretrained(model), name=model)
    except OSError as error:
        raise UsageError(
            f"no model {model!r} is known and no configuration can be read there; known are "
            + ", ".join(SHAPES)
        ) from error


def _fits(found: MemoryPlan, setup: Setup) -> bool | None:
    if setup.device_gib is None:
        return None
    return found.peak <= _ROOM * setup.device_gib * GIB


def _fitting(shape: ModelShape, workload: Workload, setup: Setup) -> Workload:
    """The workload, made smaller until it fits; as it was when nothing helps."""
    tried = workload
    for _ in range(_MOST_HALVINGS):
        if _fits(plan_memory(shape, tried, setup), setup) is not False:
            return tried
        tried = smaller(tried)
    return workload


def _record(
    shape: ModelShape, workload: Workload, setup: Setup, found: MemoryPlan
) -> dict[str, Any]:
    return {
        "model": shape.name,
        "parameters": found.parameters,
        "trained": found.trained,
        "bytes": {part: getattr(found, part) for part in _PARTS},
        "peak_bytes": found.peak,
        "fits": _fits(found, setup),
        "rows_at_once": workload.rows_at_once,
        "checkpointing": workload.checkpointing,
        "written_tokens": workload.written_tokens,
        "read_tokens": workload.read_tokens,
    }


def _show(shape: ModelShape, workload: Workload, setup: Setup, found: MemoryPlan) -> None:
    print_text(
        f"{shape.name}: {found.parameters / 1e6:,.0f} M weights, {found.trained / 1e6:,.0f} M of "
        f"them trained; a step writes up to {workload.written_tokens:,} tokens and reads up to "
        f"{workload.read_tokens:,}."
    )
    when = {"cache": "while rollouts are written"}
    rows = [(part, f"{getattr(found, part) / GIB:,.2f}", when.get(part, "")) for part in _PARTS]
    rows.append(("at its highest", f"{found.peak / GIB:,.2f}", "generation and update in turn"))
    columns = [Column(title="on each device"), Column(title="GiB", align="right"), Column(title="")]
    print_table(columns, rows)
    for line in _advice(workload, setup, found):
        print_text(line)


def _advice(workload: Workload, setup: Setup, found: MemoryPlan) -> list[str]:
    fits = _fits(found, setup)
    if fits is None:
        return []
    if fits:
        again = ", with activations computed again" if workload.checkpointing else ""
        return [
            f"It fits into {setup.device_gib:g} GiB, reading {workload.rows_at_once} rows{again}."
        ]
    ways = ["--lora 16"] if not setup.lora_rank else []
    ways += ["--sharding zero3 with more --devices"] if setup.sharding != "zero3" else []
    ways += ["more --devices"] if setup.sharding == "zero3" else []
    return [f"It does not fit into {setup.device_gib:g} GiB; try {' or '.join(ways)}."]
