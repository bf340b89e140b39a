"""How the learning rate rises and falls over the steps of a run."""

from __future__ import annotations

import math

from agentkit_training.engines.base import OptimizerSettings


def rate_factor(settings: OptimizerSettings, *, step: int, steps: int) -> float:
    """What the learning rate is multiplied with at ``step``, as transformers' schedules have it.

    Args:
        settings: The schedule and the warm-up.
        step: From 0.
        steps: In the whole run.

    Example:
        >>> cosine = OptimizerSettings(schedule="cosine")
        >>> [round(rate_factor(cosine, step=step, steps=4), 3) for step in range(4)]
        [1.0, 0.854, 0.5, 0.146]
    """
    warmup = math.ceil(settings.warmup_ratio * steps)
    if step < warmup:
        return step / max(1, warmup)
    progress = (step - warmup) / max(1, steps - warmup)
    match settings.schedule:
        case "constant":
            return 1.0
        case "linear":
            return max(0.0, 1.0 - progress)
        case "cosine":
            return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))
