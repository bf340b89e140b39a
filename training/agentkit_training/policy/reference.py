"""``reference_policy``: the policy as it is now, for the KL divergence while it goes on learning.

Engines read it as any policy, under ``no_grad``. With LoRA it costs no second model: the same
weights are read with the adapters switched off, or with a copy of the small matrices.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

from agentkit_training.policy.lora import ADAPTER
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch
    from transformers import PreTrainedModel


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


_REFERENCE = "reference"


def reference_policy(policy: Policy) -> Policy:
    """The policy as it is now; training ``policy`` later does not change it.

    Fully trained policies are copied. A policy with fresh LoRA adapters is read with these
    switched off; one whose adapters have learned already (SFT before GRPO) keeps a frozen copy of
    the adapters beside, under the name ``reference``.

    Example:
        >>> from agentkit_training import tiny_policy
        >>> reference_policy(tiny_policy()).trainable
        []
    """
    if not policy.is_adapted:
        model = copy.deepcopy(policy.model)
        model.requires_grad_(requires_grad=False)
        return replace(policy, model=model.eval())
    switched = _Switched(policy.model, _before_learning(policy.model))
    return replace(policy, model=cast("PreTrainedModel", switched))


def _before_learning(model: Any) -> Callable[[], AbstractContextManager[None]]:
    """How to read the model as it is now, whatever its adapters learn later."""
    if _is_fresh(model):
        return cast("Callable[[], AbstractContextManager[None]]", model.disable_adapter)
    _keep_copy(model)

    @contextmanager
    def reading_copy() -> Iterator[None]:
        model.set_adapter(_REFERENCE)
        try:
            yield
        finally:
            model.set_adapter(ADAPTER)

    return reading_copy


def _is_fresh(model: Any) -> bool:
    """Whether no adapter has learned: every matrix B is 0."""
    return not any(
        one.detach().any() for name, one in model.named_parameters() if ".lora_B." in name
    )


def _keep_copy(model: Any) -> None:
    """Add the adapters as they are now, once more and frozen."""
    import torch

    if _REFERENCE in model.peft_config:
        model.delete_adapter(_REFERENCE)
    model.add_adapter(_REFERENCE, copy.deepcopy(model.peft_config[ADAPTER]))
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, one in weights.items():
            if f".{_REFERENCE}." in name:
                one.data = weights[name.replace(f".{_REFERENCE}.", f".{ADAPTER}.")].detach().clone()
                one.requires_grad_(requires_grad=False)
    model.set_adapter(ADAPTER)


class _Switched:
    """A model that is read with other adapters than it is trained with."""

    def __init__(self, model: Any, switch: Callable[[], AbstractContextManager[None]]) -> None:
        self._model = model
        self._switch = switch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        was_training = self._model.training
        self._model.eval()  # without dropout
        try:
            with self._switch():
                return self._model(*args, **kwargs)
        finally:
            self._model.train(was_training)

    @property
    def device(self) -> torch.device:
        device: torch.device = self._model.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self._model.dtype
        return dtype

    @property
    def config(self) -> Any:
        return self._model.config

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """None: whatever they are, they are not the reference's to change."""
        return iter(())

    def eval(self) -> _Switched:
        return self
