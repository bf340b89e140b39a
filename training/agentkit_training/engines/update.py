"""One GRPO update: short and exact, in one process.

What it leaves out makes it quick, not different: rollouts whose advantage is 0 add nothing to the
gradient and are not read; each prompt is read once for all its rollouts; logits are computed for
completion tokens alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.engines.objective import Objective, token_losses, token_shares
from agentkit_training.engines.packing import Pack, packed_logprobs, packs
from agentkit_training.engines.rows import TrainingRow
from agentkit_training.errors import DivergedError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateReport:
    """What one update did.

    Attributes:
        loss: The loss before the update.
        gradient_norm: Of the gradient before clipping.
        rows: Sequences in the batch.
        read_rows: Those that were read; the rest had no advantage.
        read_tokens: Tokens that went through the model.
        loss_tokens: Tokens of the batch that bear loss.
    """

    loss: float
    gradient_norm: float
    rows: int
    read_rows: int
    read_tokens: int
    loss_tokens: int


def update(
    policy: Policy,
    rows: Sequence[TrainingRow],
    optimizer: torch.optim.Optimizer,
    objective: Objective = Objective(),  # noqa: B008 - immutable
    *,
    reference: Policy | None = None,
    max_gradient_norm: float = 1.0,
    step: int = 0,
    max_tokens: int = 4096,
) -> UpdateReport:
    """One optimiser step on a batch of rollouts.

    Args:
        policy: What learns.
        rows: The batch, in any order.
        optimizer: Of the policy's trainable parameters.
        objective: What to make larger.
        reference: What the KL divergence is taken to; None leaves it out.
        max_gradient_norm: To which the gradient is clipped; 0 does not clip.
        step: For the error message.
        max_tokens: Longest input that is read at once.

    Raises:
        DivergedError: The loss or the gradient is not a number; the weights are as before.
    """
    backward = _Backward(
        policy=policy, rows=rows, objective=objective, reference=reference, max_tokens=max_tokens
    )
    policy.model.train()
    optimizer.zero_grad(set_to_none=True)
    try:
        backward.run()
        norm = _clipped_norm(policy, max_gradient_norm)
        if not (math.isfinite(backward.loss) and math.isfinite(norm)):
            raise DivergedError(
                f"at step {step} the loss is {backward.loss} and the norm of the gradient {norm}; "
                "the weights were not changed. Lower the learning rate, or clip harder",
                step=step,
            )
        if backward.read_rows:
            optimizer.step()
    finally:
        optimizer.zero_grad(set_to_none=True)
        policy.model.eval()
    return UpdateReport(
        loss=backward.loss,
        gradient_norm=norm,
        rows=len(rows),
        read_rows=backward.read_rows,
        read_tokens=backward.read_tokens,
        loss_tokens=sum(sum(row.sequence.written) for row in rows),
    )


@dataclass(kw_only=True)
class _Backward:
    """The backward pass over one batch, pack by pack."""

    policy: Policy
    rows: Sequence[TrainingRow]
    objective: Objective
    reference: Policy | None
    max_tokens: int
    loss: float = 0.0
    read_rows: int = 0
    read_tokens: int = 0

    def run(self) -> None:
        """Add the gradient of the loss to the policy's parameters."""
        import torch

        lengths = [sum(row.sequence.written) for row in self.rows]
        shares = token_shares(lengths, objective=self.objective)
        counted = [
            (row, share)
            for row, share, length in zip(self.rows, shares, lengths, strict=True)
            if length and (row.advantage or self._has_divergence)
        ]
        sequences = [row.sequence for row, _ in counted]
        for places, pack in packs(sequences, max_tokens=self.max_tokens):
            chosen = [counted[place] for place in places]
            logprobs = packed_logprobs(self.policy, pack)
            loss = self._loss(logprobs, chosen, self._referred(pack))
            torch.autograd.backward(loss)
            self.loss += float(loss.detach())
            self.read_rows += len(places)
            self.read_tokens += len(pack)

    @property
    def _has_divergence(self) -> bool:
        return self.reference is not None and self.objective.kl_coefficient != 0

    def _referred(self, pack: Pack) -> torch.Tensor | None:
        import torch

        if not self._has_divergence or self.reference is None:
            return None
        with torch.no_grad():
            return packed_logprobs(self.reference, pack)

    def _loss(
        self,
        logprobs: torch.Tensor,
        chosen: Sequence[tuple[TrainingRow, float]],
        referred: torch.Tensor | None,
    ) -> torch.Tensor:
        import torch

        device = logprobs.device
        sequences = [row.sequence for row, _ in chosen]
        lengths = torch.tensor([len(one.completion) for one in sequences], device=device)

        def spread(values: Sequence[float]) -> torch.Tensor:
            return torch.tensor(values, device=device).repeat_interleave(lengths)

        old = logprobs.detach()
        if self.objective.old_logprobs == "sampled":
            old = torch.tensor([one for s in sequences for one in s.logprobs], device=device)
        losses = token_losses(
            logprobs,
            old=old,
            advantages=spread([row.advantage for row, _ in chosen]),
            reference=referred,
            objective=self.objective,
        )
        written = torch.tensor([one for s in sequences for one in s.written], device=device)
        return (losses * spread([share for _, share in chosen]) * written).sum()


def _clipped_norm(policy: Policy, limit: float) -> float:
    import torch

    gradients = [one for one in policy.trainable if one.grad is not None]
    if not gradients:
        return 0.0
    return float(torch.nn.utils.clip_grad_norm_(gradients, limit or math.inf))
