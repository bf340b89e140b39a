"""Less memory for more time: activations that are computed again instead of kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from agentkit_training.policy.policy import Policy


@contextmanager
def recomputing(policy: Policy, *, wanted: bool) -> Iterator[None]:
    """Let the model keep no activations for as long as it learns (gradient checkpointing).

    Args:
        policy: The model. Adapters keep working: nothing is asked of the inputs' gradient.
        wanted: Whether to; False changes nothing.
    """
    if not wanted:
        yield
        return
    policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    try:
        yield
    finally:
        policy.model.gradient_checkpointing_disable()


def recomputing_option() -> str:
    """What this release of transformers calls the same among its training arguments."""
    from transformers import TrainingArguments

    newer = "activation_checkpointing"
    names = {one.name for one in fields(TrainingArguments)}
    return newer if newer in names else "gradient_checkpointing"
