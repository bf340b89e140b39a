"""Whether a plan fits its devices, and what would."""

from __future__ import annotations

from dataclasses import replace

from agentkit_training.plan.memory import (
    GIB,
    MemoryPlan,
    Setup,
    Workload,
    fewer_written,
    plan_memory,
    smaller,
)
from agentkit_training.plan.shape import ModelShape

KEPT_FREE = 0.1
"""Share of a device's memory that is left to kernels and fragments."""

_MOST_HALVINGS = 24


def usable(device_gib: float) -> float:
    """What a run may hold of a device, in GiB."""
    return (1 - KEPT_FREE) * device_gib


def fits(found: MemoryPlan, setup: Setup) -> bool | None:
    """Whether a plan fits its devices; None where their memory is not known."""
    if setup.device_gib is None:
        return None
    return found.peak <= usable(setup.device_gib) * GIB


def fitting(shape: ModelShape, workload: Workload, setup: Setup) -> Workload:
    """The workload, made smaller until it fits; as it was when nothing helps.

    What is at its highest is made smaller: the rollouts that are written at once, or the rows that
    are read at once. How many rows TRL reads in fine-tuning in several processes is not to be set.
    """
    tried = workload
    for _ in range(_MOST_HALVINGS):
        found = plan_memory(shape, tried, setup)
        if fits(found, setup) is not False:
            return tried
        if found.generation > found.update:
            tried = fewer_written(tried, devices=setup.devices)
        elif tried.is_read and setup.devices > 1:
            tried = replace(tried, checkpointing=True)
        else:
            tried = smaller(tried)
    return workload
