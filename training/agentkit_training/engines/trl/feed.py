"""``Feed``: asks the source for each step's rollouts, and tells it what came of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.base import Share, Source, StepReport
from agentkit_training.engines.objective import BatchSize, Objective, token_share
from agentkit_training.engines.packing import packed_logprobs, packs
from agentkit_training.engines.random_state import RandomState, seed_torch
from agentkit_training.engines.rows import batch_size
from agentkit_training.engines.trl.batch import Batch, batch_rows, padded_size
from agentkit_training.engines.trl.learner import Learner
from agentkit_training.errors import DivergedError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

if TYPE_CHECKING:
    import torch


def padded_logprobs(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    *,
    shape: tuple[int, int],
    temperature: float,
    max_tokens: int,
) -> torch.Tensor:
    """The log-probability of every completion token, one row for each sequence.

    Args:
        policy: What reads; no gradient is kept.
        sequences: What to read.
        shape: Rows and columns of the answer; what no token fills is 0.
        temperature: That the tokens were sampled at.
        max_tokens: Longest input that is read at once.

    Returns:
        float32, of shape ``shape``.
    """
    import torch

    found = torch.zeros(shape, device=policy.device)
    with torch.no_grad():
        for places, pack in packs(sequences, max_tokens=max_tokens):
            read = packed_logprobs(policy, pack, temperature=temperature)
            lengths = [len(one) for one in pack.completions]
            for place, part in zip(places, torch.split(read, lengths), strict=True):
                found[place, : len(part)] = part
    return found


@dataclass(kw_only=True)
class Feed:
    """Stands between TRL's trainer and the source, for one call of ``train``.

    Attributes:
        policy: What learns, and writes the rollouts.
        learner: The module that TRL trains.
        source: What it learns from.
        objective: What an update makes larger.
        scaled: Whether advantages are divided by the group's deviation.
        reference: What the KL divergence is taken to; None leaves it out.
        max_tokens: Longest input of the reference that is read at once.
        parts: In how many parts a batch is read.
        first: Steps that were taken before this call.
        seed: Of what TRL draws in an update.
        random: The random generators as they were before TRL drew; None while it does not.
        begin: Called when the module is as TRL trains it, before the first step.
        follow: Called when the weights are other ones, before anything is written with them.
        advance: Told the number of steps that are taken, before the source is told.
        batch: The rows of the step under way.
    """

    policy: Policy
    learner: Learner
    source: Source
    objective: Objective
    scaled: bool
    reference: Policy | None
    max_tokens: int
    parts: int
    first: int
    seed: int
    random: RandomState | None
    begin: Callable[[], None]
    follow: Callable[[], None]
    advance: Callable[[int], None]
    batch: Batch = field(init=False)
    _read_tokens: int = field(init=False, default=0)
    _too_long: int = field(init=False, default=0)
    _norm: float = field(init=False, default=0.0)
    _rollout_seconds: float = field(init=False, default=0.0)
    _rolled: float = field(init=False, default=0.0)
    _update_seconds: float = field(init=False, default=0.0)

    def ask(self, trainer: Any) -> Batch:
        """The rows of the trainer's step, of this process's share of the tasks."""
        self.put_back()
        accelerator = trainer.accelerator
        share = Share(rank=accelerator.process_index, world=accelerator.num_processes)
        step = self.first + trainer.state.global_step
        started = time.perf_counter()
        self.policy.model.eval()
        rollouts = self.source.rollouts(step, share)
        self.learner.module.train()
        self._rolled = time.perf_counter()
        self.random = RandomState.now(self.policy.device)
        seed_torch(self.seed, step, share.rank)
        self._rollout_seconds = self._rolled - started
        rows, rewards, self._too_long = batch_rows(
            rollouts, scaled=self.scaled, longest=self.policy.context_tokens
        )
        most, whole = _gathered(trainer, len(rows), batch_size(rows))
        self.batch = Batch(
            rows=rows,
            rewards=rewards,
            size=padded_size(most, parts=self.parts),
            whole=whole,
        )
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

        shape = tuple(output["completion_ids"].shape)
        advantages, shares = torch.zeros(2, shape[0], device=output["completion_ids"].device)
        for place, row in enumerate(self.batch.rows):
            advantages[place] = row.advantage
            shares[place] = token_share(
                row.length, row.part, size=self.batch.whole, objective=self.objective
            )
        output["advantages"] = advantages
        written = output["tool_mask"]
        masses = written * shares[:, None]
        mean = masses.sum() / written.sum() if bool(masses.any()) else torch.ones_like(shares[0])
        output["tool_mask"] = masses / mean  # about 1, since TRL's figures are means over it
        output["num_items_in_batch"] = 1 / mean
        if self.objective.old_logprobs == "sampled":
            output["old_per_token_logps"] = output["sampling_per_token_logps"]
        self._read_tokens = output["prompt_ids"].numel() + output["completion_ids"].numel()
        if self.reference is None or not self._has_divergence:
            return 0.0
        output["ref_per_token_logps"] = padded_logprobs(
            self.reference,
            self.batch.sequences,
            shape=(shape[0], shape[1]),
            temperature=self.objective.temperature,
            max_tokens=self.max_tokens,
        ).to(advantages.device)
        return self.objective.kl_coefficient

    def put_back(self) -> None:
        """Let the random generators go on where TRL came between."""
        if self.random is not None:
            self.random.restore()
            self.random = None

    def began(self, trainer: Any) -> None:
        """TRL has prepared the module, and will take its first step."""
        self.learner.begin(trainer, lambda: self._may_step(trainer.state.global_step))
        self.begin()

    def before_update(self, step: int) -> None:
        """Look at the gradient, which TRL has clipped.

        Args:
            step: Of this call, from 0.

        Raises:
            DivergedError: It is not a number; the weights are as before.
        """
        if not self.learner.steps_itself and not self._may_step(step):
            self.learner.module.zero_grad(set_to_none=True)

    def _may_step(self, step: int) -> bool:
        """Whether anything was learned; else momentum and decay shall not move the weights."""
        self._norm = self.learner.gradient_norm()
        if not math.isfinite(self._norm):
            number = self.first + step
            raise DivergedError(
                f"at step {number} the norm of the gradient is {self._norm}; the weights were not "
                "changed. Lower the learning rate, or clip harder",
                step=number,
            )
        return self._norm != 0

    def after_update(self, taken: int) -> None:
        """The weights have changed; ``taken`` steps of this call are done.

        Raises:
            DivergedError: A weight is no number, which no later step would mend.
        """
        self._update_seconds = time.perf_counter() - self._rolled
        self.put_back()
        if not math.isfinite(self.learner.weight_norm()):
            number = self.first + taken - 1
            raise DivergedError(
                f"after step {number} a weight is no finite number, though the gradient was; go on "
                "from the last checkpoint with a lower learning rate",
                step=number,
            )
        self.learner.hand_over()
        self.follow()
        self.advance(self.first + taken)

    def logged(self, taken: int, logs: Mapping[str, float]) -> None:
        """TRL has told its figures of a step; the source is told now.

        Args:
            taken: Steps of this call that are done.
            logs: TRL's figures, which it tells as those of training only while the module trains.
        """
        self.policy.model.eval()
        rows = self.batch.rows
        report = StepReport(
            step=self.first + taken - 1,
            loss=float(logs["loss"]),
            gradient_norm=self._norm
            if self.learner.steps_itself
            else float(logs.get("grad_norm", self._norm)),
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

    @property
    def _has_divergence(self) -> bool:
        return self.reference is not None and self.objective.kl_coefficient != 0

    def _taught(self) -> int:
        """Rows that have a gradient, which are those that the lean engine reads.

        TRL reads all of them, and the empty ones that fill up the batch. Counted like that, a step
        in which nothing was learned would look like any other.
        """
        written = [row for row in self.batch.rows if row.length]
        return sum(1 for row in written if row.advantage or self._has_divergence)


def _gathered(trainer: Any, rows: int, size: BatchSize) -> tuple[int, BatchSize]:
    """Most rows of a process, and the size of the batch on all of them."""
    import torch

    own = torch.tensor([[rows, size.outputs, size.tokens]], device=trainer.accelerator.device)
    told = trainer.accelerator.gather(own)
    _, outputs, tokens = told.sum(0).tolist()
    return int(told[:, 0].max()), BatchSize(outputs=outputs, tokens=round(tokens))
