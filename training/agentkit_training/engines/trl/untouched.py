"""TRL writes on the model that it trains; here that is taken off again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agentkit_training.policy.policy import Policy

_PATCHED = ("forward", "model_tags", "_is_accelerate_prepared")
"""Attributes of the model itself: its own forward, labels for model cards."""


@contextmanager
def untouched(policy: Policy) -> Iterator[None]:
    """Leave the model as it was but for its weights, whatever happens inside.

    A model that went through TRL unguarded is saved without a cache for generation
    (``use_cache``), with other end tokens, and with a forward of TRL's.
    """
    model: Any = policy.model
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    kept = [_Kept(one, _PATCHED) for one in {id(one): one for one in (model, inner)}.values()]
    settings = {id(one): one for one in _settings(model)}
    kept += [_Kept(one, tuple(vars(one))) for one in settings.values()]
    had_checkpoints = _is_checkpointing(inner)
    try:
        yield
    finally:
        for one in kept:
            one.put_back()
        if _is_checkpointing(inner) and not had_checkpoints:
            inner.gradient_checkpointing_disable()
        model.zero_grad(set_to_none=True)
        model.eval()


class _Kept:
    """Some attributes of an object, as they were; those that were not there are taken off."""

    def __init__(self, owner: Any, names: tuple[str, ...]) -> None:
        self._owner = owner
        self._names = names
        self._values = {name: vars(owner)[name] for name in names if name in vars(owner)}

    def put_back(self) -> None:
        """Write them on the object again."""
        for name in self._names:
            vars(self._owner).pop(name, None)
        vars(self._owner).update(self._values)


def _settings(model: Any) -> Iterator[Any]:
    yield model.config
    yield model.config.get_text_config()
    if getattr(model, "generation_config", None) is not None:
        yield model.generation_config


def _is_checkpointing(model: Any) -> bool:
    return any(getattr(one, "gradient_checkpointing", False) for one in model.modules())
