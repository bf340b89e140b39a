"""``Feed``: asks the source for each step's rollouts, and tells it what came of them.

TRL wants as many rows on each process, an even number of them, and groups of one size. Ours come
as they come: rollouts with a fault are out, a rollout whose prompt was rewritten between turns has
several sequences, groups may be of any size. So advantages are worked out here, each sequence is a
row, and empty rows that bear no loss fill up what is missing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.base import RandomState, Share, Source, StepReport, seed_torch
from agentkit_training.engines.objective import BatchSize, Limits, token_share
from agentkit_training.engines.packing import TrainingRow, batch_size, groups, training_rows
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.engines.update import clipped_norm, refuse_broken
from agentkit_training.errors import DivergedError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import Rollout

if TYPE_CHECKING:
    import torch

    from agentkit_training.engines.trl.engine import TrlEngine

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


def columns(batch: Batch, *, pad_id: int) -> dict[str, list[Any]]:
    """The rows as TRL's ``rollout_func`` gives them, empty ones last.

    Args:
        batch: The rows.
        pad_id: The one token of an empty row, and of a row without a completion.
    """
    sequences = [row.sequence for row in batch.rows]
    empty = batch.size - len(sequences)
    written = [[int(bears) for bears in one.written] or [0] for one in sequences]
    return {
        "prompt_ids": [list(one.prompt) or [pad_id] for one in sequences] + [[pad_id]] * empty,
        "completion_ids": [list(one.completion) or [pad_id] for one in sequences]
        + [[pad_id]] * empty,
        "logprobs": [list(one.logprobs) or [0.0] for one in sequences] + [[0.0]] * empty,
        "env_mask": written + [[0]] * empty,
        "reward": [*batch.rewards, *[0.0] * empty],
    }


@dataclass(kw_only=True)
class Feed:
    """Stands between TRL's trainer and the source, for one call of ``train``.

    Attributes:
        engine: How it is trained, and what follows the weights.
        policy: What learns, and writes the rollouts.
        source: What it learns from.
        batch: The rows of the step under way.
    """

    engine: TrlEngine
    policy: Policy
    source: Source
    batch: Batch = field(init=False)
    _read_tokens: int = field(init=False, default=0)
    _too_long: int = field(init=False, default=0)
    _norm: float = field(init=False, default=0.0)
    _rollout_seconds: float = field(init=False, default=0.0)
    _rolled: float = field(init=False, default=0.0)
    _update_seconds: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._first = self.engine.step
        self._random: RandomState | None = RandomState.now(self.policy.device)

    def ask(self, trainer: Any) -> Batch:
        """The rows of the trainer's step, of this process's share of the tasks."""
        self.put_back()
        accelerator = trainer.accelerator
        share = Share(rank=accelerator.process_index, world=accelerator.num_processes)
        step = self._first + trainer.state.global_step
        started = time.perf_counter()
        self.policy.model.eval()
        rollouts = self.source.rollouts(step, share)
        self.policy.model.train()
        self._rolled = time.perf_counter()
        self._random = RandomState.now(self.policy.device)
        seed_torch(self.engine.seed, step, share.rank)
        self._rollout_seconds = self._rolled - started
        rows, rewards, self._too_long = batch_rows(
            rollouts, scaled=self.engine.scaled, longest=self.policy.context_tokens
        )
        most, whole = _gathered(trainer, len(rows), batch_size(rows))
        size = padded_size(most, parts=self.engine.parts)
        self.batch = Batch(rows=rows, rewards=rewards, size=size, whole=whole)
        return self.batch

    def complete(self, output: dict[str, torch.Tensor]) -> float:
        """Put into what TRL will train on what it can not know: advantages, shares, the reference.

        TRL sums the losses of tokens times their mask, and divides by the number of tokens
        (``dapo``). So a mask that is each token's share makes every mean that there is.

        Args:
            output: What TRL made of the rows; advantages and mask are replaced.

        Returns:
            The weight of the KL divergence in this step.
        """
        import torch

        shape = output["completion_ids"].shape
        advantages, shares = torch.zeros(2, shape[0], device=output["completion_ids"].device)
        for place, row in enumerate(self.batch.rows):
            advantages[place] = row.advantage
            shares[place] = token_share(
                row.length, row.part, size=self.batch.whole, objective=self.engine.objective
            )
        output["advantages"] = advantages
        written = output["tool_mask"]
        masses = written * shares[:, None]
        mean = masses.sum() / written.sum() if bool(masses.any()) else torch.ones_like(shares[0])
        output["tool_mask"] = masses / mean  # about 1, since TRL's figures are means over it
        output["num_items_in_batch"] = 1 / mean
        if self.engine.objective.old_logprobs == "sampled":
            output["old_per_token_logps"] = output["sampling_per_token_logps"]
        self._read_tokens = output["prompt_ids"].numel() + output["completion_ids"].numel()
        if self.engine.reference is None or not self.engine.has_divergence:
            return 0.0
        referred = torch.zeros(shape, device=advantages.device)
        read = token_logprobs(
            self.engine.reference,
            [row.sequence for row in self.batch.rows],
            temperature=self.engine.objective.temperature,
            limits=Limits(tokens=self.engine.max_tokens),
        )
        for place, part in enumerate(read):
            referred[place, : len(part)] = part
        output["ref_per_token_logps"] = referred
        return self.engine.objective.kl_coefficient

    def put_back(self) -> None:
        """Let the random generators go on where TRL came between."""
        if self._random is not None:
            self._random.restore()
            self._random = None

    def before_update(self, step: int) -> None:
        """Look at the gradient, which TRL has clipped; without any, nothing shall move the weights.

        Args:
            step: Of this call, from 0.

        Raises:
            DivergedError: It is not a number; the weights are as before.
        """
        self._norm = clipped_norm(self.policy)
        if not math.isfinite(self._norm):
            number = self._first + step
            raise DivergedError(
                f"at step {number} the norm of the gradient is {self._norm}; the weights were not "
                "changed. Lower the learning rate, or clip harder",
                step=number,
            )
        if not self._norm:  # or momentum and decay would move the weights
            self.policy.model.zero_grad(set_to_none=True)

    def after_update(self, taken: int) -> None:
        """The weights have changed; ``taken`` steps of this call are done.

        Raises:
            DivergedError: A weight is no number, which no later step would mend.
        """
        self._update_seconds = time.perf_counter() - self._rolled
        self.put_back()
        refuse_broken(self.policy, self._first + taken - 1)
        self.follow()
        self.engine.step = self._first + taken

    def follow(self) -> None:
        """Let the writer take over weights that are other ones, before it writes with them."""
        if self.engine.writer is not None:
            self.engine.writer.take_over()

    def logged(self, taken: int, logs: Mapping[str, float]) -> None:
        """TRL has told its figures of a step; the source is told now.

        Args:
            taken: Steps of this call that are done.
            logs: TRL's figures, which it tells as those of training only while the module trains.
        """
        self.policy.model.eval()
        rows = self.batch.rows
        report = StepReport(
            step=self._first + taken - 1,
            loss=float(logs["loss"]),
            gradient_norm=float(logs.get("grad_norm", self._norm)),
            learning_rate=float(logs["learning_rate"]),
            rows=len(rows) + self._too_long,
            read_rows=self._taught(),
            read_tokens=self._read_tokens,
            loss_tokens=sum(row.length for row in rows),
            rollout_seconds=self._rollout_seconds,
            update_seconds=self._update_seconds,
            too_long=self._too_long,
            entropy=float(logs.get("entropy") or 0.0),
            divergence=float(logs.get("kl") or 0.0),
            clip_share=float(logs.get("clip_ratio/region_mean") or 0.0),
            max_log_ratio=float(logs.get("sampling/sampling_logp_difference/max") or 0.0),
        )
        self.source.finished(report)

    def _taught(self) -> int:
        """Rows that have a gradient, which are those that the lean engine reads.

        TRL reads all of them, and the empty ones that fill up the batch. Counted like that, a step
        in which nothing was learned would look like any other.
        """
        written = [row for row in self.batch.rows if row.length]
        return sum(1 for row in written if row.advantage or self.engine.has_divergence)


def _gathered(trainer: Any, rows: int, size: BatchSize) -> tuple[int, BatchSize]:
    """Most rows of a process, and the size of the batch on all of them."""
    import torch

    own = torch.tensor([[rows, size.outputs, size.tokens]], device=trainer.accelerator.device)
    told = trainer.accelerator.gather(own)
    _, outputs, tokens = told.sum(0).tolist()
    return int(told[:, 0].max()), BatchSize(outputs=outputs, tokens=round(tokens))
