"""From rollouts to the rows that TRL reads.

TRL wants as many rows on each process, an even number of them, and groups of one size. Ours come
as they come: rollouts with a fault are out, a rollout whose prompt was rewritten between turns has
several sequences, groups may be of any size. So advantages are worked out here, each sequence is a
row, and empty rows that bear no loss fill up what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentkit_training.engines.objective import BatchSize
from agentkit_training.engines.rows import TrainingRow, groups, training_rows
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import Rollout, TokenSequence

GROUP = 2
"""What TRL is told about the size of groups: the smallest that it takes. It only rules how many
rows there must be; the advantages that TRL works out from it are replaced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The rows of one step, of one process.

    Attributes:
        rows: Those that are trained on.
        rewards: The reward of each row's rollout, for TRL's own log.
        size: Rows that TRL reads, empty ones included; equal on all processes.
        whole: What is trained on, on all processes together.
    """

    rows: tuple[TrainingRow, ...]
    rewards: tuple[float, ...]
    size: int
    whole: BatchSize

    @property
    def sequences(self) -> list[TokenSequence]:
        """The tokens of the rows that are trained on."""
        return [row.sequence for row in self.rows]


def batch_rows(
    rollouts: Sequence[Rollout], *, scaled: bool = True, longest: int | None = None
) -> tuple[tuple[TrainingRow, ...], tuple[float, ...], int]:
    """The rows of a batch, their rewards, and how many were left out as too long.

    Rollouts with a fault are left out, of their group's mean as well.

    Args:
        rollouts: Those of a step.
        scaled: Whether advantages are divided by the group's deviation.
        longest: Most tokens of a sequence that the model reads; None for any number.
    """
    rows = training_rows(rollouts, scaled=scaled)
    sound = [one for group in groups(rollouts) for one in group if not one.fault]
    rewards = [one.reward for one in sound for _ in one.sequences]
    fitting = [
        (row, reward)
        for row, reward in zip(rows, rewards, strict=True)
        if longest is None or len(row.sequence) <= longest
    ]
    kept = tuple(row for row, _ in fitting)
    return kept, tuple(reward for _, reward in fitting), len(rows) - len(fitting)


def padded_size(rows: int, *, parts: int = 1) -> int:
    """The next number of rows that TRL takes, at least one group.

    Args:
        rows: Most rows of a process.
        parts: Into how many equal parts the rows are split.

    Example:
        >>> [padded_size(rows) for rows in (0, 1, 2, 3)]
        [2, 2, 2, 4]
        >>> padded_size(5, parts=4)
        8
    """
    step = GROUP * parts
    return max(1, -(-rows // step)) * step


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """What TRL's ``rollout_func`` gives, one entry for each row.

    Attributes:
        prompt_ids: What was read before the first answer.
        completion_ids: What was written and read after it; never empty.
        logprobs: Of the tokens of ``completion_ids`` when they were written.
        env_mask: 1 for the tokens that bear loss.
        reward: For TRL's own log.
    """

    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    logprobs: list[list[float]]
    env_mask: list[list[int]]
    reward: list[float]


def columns(batch: Batch, *, pad_id: int) -> Columns:
    """The rows as TRL reads them, empty ones last.

    Args:
        batch: The rows.
        pad_id: The one token of an empty row, and of a row without a completion.
    """
    sequences = batch.sequences
    empty = batch.size - len(sequences)
    return Columns(
        prompt_ids=[list(one.prompt) or [pad_id] for one in sequences] + [[pad_id]] * empty,
        completion_ids=[list(one.completion) or [pad_id] for one in sequences] + [[pad_id]] * empty,
        logprobs=[list(one.logprobs) or [0.0] for one in sequences] + [[0.0]] * empty,
        env_mask=[[int(bears) for bears in one.written] or [0] for one in sequences]
        + [[0]] * empty,
        reward=[*batch.rewards, *[0.0] * empty],
    )


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
