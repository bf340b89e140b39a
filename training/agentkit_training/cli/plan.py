"""``agentkit-train plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from agentkit.cli.output import Column, print_json, print_table, print_text, say
from agentkit.errors import UsageError
from agentkit_training.cli.console import advised_keys, what_is_lacking
from agentkit_training.plan.layout import KEPT_FREE, Layout, fits, fitting, layout_of, usable
from agentkit_training.plan.memory import GIB, Setup, Workload, plan_memory
from agentkit_training.plan.shape import SHAPES, ModelShape

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


@click.command(
    epilog="""\b
Examples:
  agentkit-train plan examples/eight_gpus_fsdp.yaml
  agentkit-train plan run.yaml --devices 8 --device-gib 80
  agentkit-train plan --model qwen2.5-7b --device-gib 80
  agentkit-train plan --model qwen2.5-7b --devices 8 --sharding zero3 --device-gib 80
  agentkit-train plan --model smollm2-135m --lora 16 --prompt-tokens 400 --completion-tokens 64"""
)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the configuration, such as engine.parts=4.",
)
@click.option(
    "--model",
    help=f"Without a configuration: one of {', '.join(SHAPES)}, or weights to look at.",
)
@click.option("--tasks", default=8, show_default=True, help="Tasks tried in a step.")
@click.option("--group-size", default=8, show_default=True, help="Rollouts of each task.")
@click.option("--prompt-tokens", default=1024, show_default=True)
@click.option("--completion-tokens", default=256, show_default=True)
@click.option("--rows", default=8, show_default=True, help="Rollouts that are read at once.")
@click.option("--padded", is_flag=True, help="Read a prompt in every row, as TRL does.")
@click.option("--precision", type=click.Choice(["bf16", "fp32"]), default="bf16", show_default=True)
@click.option("--lora", default=0, show_default=True, help="Rank of adapters; 0 trains all.")
@click.option(
    "--master-weights/--no-master-weights",
    default=True,
    show_default=True,
    help="Whether whole bf16 weights are kept in fp32 as well, as our engines do.",
)
@click.option("--reference", is_flag=True, help="Keep a frozen copy for the KL divergence.")
@click.option("--devices", type=click.IntRange(min=1), help="1, or as the configuration has it.")
@click.option(
    "--sharding",
    type=click.Choice(["none", "zero2", "zero3"]),
    default="none",
    show_default=True,
    help="What devices share; zero3 is also FSDP.",
)
@click.option(
    "--writer",
    type=click.Choice(["policy", "elsewhere"]),
    default="policy",
    show_default=True,
    help="With zero3, what writes rollouts: the policy, whole on each device, or a server.",
)
@click.option("--device-gib", type=float, help="Memory of a device: does it fit?")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(**given: Any) -> None:
    """Reckon what a run needs on each device, before anything is loaded.

    The figures are closed forms, good to a quarter or so. CONFIG is that of 'sft', 'grpo' or
    'coevolve', and planned as it stands. Without it the options describe a run of 'grpo'; what does
    not fit is made smaller in steps that train the same tokens: fewer rows read or rollouts written
    at once, then activations computed again.
    """
    if given["config"] is not None:
        _refuse_options(click.get_current_context())
        layout = _of_config(given["config"], given)
    else:
        layout = _of_options(given)
    shape, workload, setup = layout.shape, layout.workload, layout.setup
    if given["as_json"]:
        if shape is None:
            raise UsageError("nothing tells the shape of the weights; give the folder they are in")
        print_json(plan_record(shape, workload, setup))
    elif given["config"] is not None or shape is None:
        show_layout(layout)
    else:
        show_memory(shape, workload, setup)
        print_text(_verdict(shape, workload, setup))


def _of_config(path: Path, given: Mapping[str, Any]) -> Layout:
    """The layout of a configuration's run, on the devices that were named, or on its own."""
    from agentkit_training.config.jobs import CoevolveConfig, SftConfig
    from agentkit_training.config.kinds import kind_of
    from agentkit_training.config.reading import read_config
    from agentkit_training.jobs.joining import check_fine_tuning
    from agentkit_training.tasks.loading import load_tasks_for_training

    changes = given["changes"]
    kind = kind_of(path, changes=changes)
    if kind is None:
        say(f"{path} has no section of one command alone; planned as a run of grpo")
    config = read_config(path, kind or CoevolveConfig, changes=changes)
    hardware = config.hardware
    if given["device_gib"] is not None:
        hardware = replace(hardware, device_gib=given["device_gib"])
    config = replace(config, hardware=hardware)
    processes = given["devices"] or hardware.processes
    if isinstance(config, SftConfig):
        check_fine_tuning(config, processes=processes)
    return layout_of(config, load_tasks_for_training(config.tasks), processes=processes)


def _of_options(given: Mapping[str, Any]) -> Layout:
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
        has_master_weights=given["master_weights"] and given["precision"] == "bf16",
        has_reference=given["reference"],
        devices=given["devices"] or 1,
        sharding=given["sharding"],
        device_gib=given["device_gib"],
        writes_whole=given["writer"] == "policy",
    )
    return Layout(shape=shape, workload=fitting(shape, workload, setup), setup=setup)


def _refuse_options(context: click.Context) -> None:
    """What a configuration says itself is not said beside it."""
    beside = {"config", "devices", "device_gib", "as_json", "changes"}
    asked = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in beside
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if asked:
        raise UsageError(
            f"{', '.join(asked)} beside a configuration, which says it itself; change a key of it "
            "with --set"
        )


def _shape(model: str | None) -> ModelShape:
    if model is None:
        raise UsageError("there is nothing to plan; give a configuration, or --model")
    known = SHAPES.get(model.removeprefix("local:"))
    if known is not None:
        return known
    from transformers import AutoConfig

    from agentkit_training.plan.shape import shape_of

    try:
        config = AutoConfig.from_pretrained(model, local_files_only=True)
        return shape_of(config, name=model)
    except OSError as error:
        raise UsageError(
            f"no model {model!r} is known and no configuration can be read there; known are "
            + ", ".join(SHAPES)
        ) from error


def _verdict(shape: ModelShape, workload: Workload, setup: Setup) -> str:
    """Whether it fits, and how, or what would help."""
    if setup.device_gib is None:
        return "Whether it fits is said with --device-gib."
    if fits(plan_memory(shape, workload, setup), setup):
        again = ", with activations computed again" if workload.checkpointing else ""
        return (
            f"It fits into {setup.device_gib:g} GiB, reading {workload.rows_at_once} rows and "
            f"writing {workload.written_at_once(setup.devices)} rollouts at once{again}."
        )
    ways = ["--lora 16"] if not setup.lora_rank else []
    ways += ["--sharding zero3 with more --devices"] if setup.sharding != "zero3" else []
    ways += ["more --devices"] if setup.sharding == "zero3" else []
    lacking = what_is_lacking(shape, workload, setup)
    return f"{lacking[0].upper()}{lacking[1:]}; try {' or '.join(ways)}."
