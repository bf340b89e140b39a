"""What would make a run fit that does not: how far off it is, and which keys to change."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit_training.plan.fitting import KEPT_FREE, fitting, usable
from agentkit_training.plan.memory import GIB, Setup, Workload, plan_memory
from agentkit_training.plan.shape import ModelShape


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
