"""One GRPO update: short and exact, in one process.

What it leaves out makes it quick, not different: rollouts whose advantage is 0 add nothing to the
gradient and are not read, unless there is a KL divergence; each prompt is read once for all its
rollouts, and what several prompts begin with once for all of them; logits are computed for
completion tokens alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.engines.base import StepReport
from agentkit_training.engines.objective import (
    Limits,
    Objective,
    TokenScores,
    divergences,
    is_clipped,
    token_losses,
    token_share,
)
from agentkit_training.engines.packing import TrainingRow, batch_size
from agentkit_training.engines.scoring import read_sequences, token_logprobs
from agentkit_training.errors import DivergedError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


def update(
    policy: Policy,
    rows: Sequence[TrainingRow],
    optimizer: torch.optim.Optimizer,
    objective: Objective = Objective(),  # noqa: B008 - immutable
    *,
    reference: Policy | None = None,
    max_gradient_norm: float = 1.0,
    step: int = 0,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> StepReport:
    """One optimiser step on a batch of rollouts.

    Args:
        policy: What learns.
        rows: The batch, in any order.
        optimizer: Of the policy's trainable parameters.
        objective: What to make larger.
        reference: What the KL divergence is taken to; None leaves it out.
        max_gradient_norm: To which the gradient is clipped; 0 does not clip.
        step: Its number, for the report and the error message.
        limits: How much is read at once.

    Raises:
        DivergedError: The loss or the gradient is not a number, and the weights are as before; or
            the weights are not, after the step.
    """
    fitting = [row for row in rows if len(row.sequence) <= policy.context_tokens]
    batch = _Batch(
        policy=policy,
        rows=fitting,
        objective=objective,
        reference=reference if objective.kl_coefficient else None,
        limits=limits,
    )
    policy.model.train()
    optimizer.zero_grad(set_to_none=True)
    try:
        batch.backward()
        norm = clipped_norm(policy, max_gradient_norm)
        if not (math.isfinite(batch.loss) and math.isfinite(norm)):
            raise DivergedError(
                f"at step {step} the loss is {batch.loss} and the norm of the gradient {norm}; "
                "the weights were not changed. Lower the learning rate, or clip harder",
                step=step,
            )
        if norm:  # or momentum and decay would move weights that nothing was learned for
            optimizer.step()
            refuse_broken(policy, step)
    finally:
        optimizer.zero_grad(set_to_none=True)
        policy.model.eval()
    return StepReport(
        step=step,
        loss=batch.loss,
        gradient_norm=norm,
        rows=len(rows),
        read_rows=batch.read_rows,
        read_tokens=batch.read_tokens,
        loss_tokens=sum(row.length for row in fitting),
        too_long=len(rows) - len(fitting),
        entropy=batch.entropy / max(1, batch.tokens),
        divergence=batch.divergence / max(1, batch.tokens),
        clip_share=batch.clipped / max(1, batch.tokens),
        max_log_ratio=batch.max_log_ratio,
    )


@dataclass(kw_only=True)
class _Batch:
    """The backward pass over one batch, piece by piece."""

    policy: Policy
    rows: Sequence[TrainingRow]
    objective: Objective
    reference: Policy | None
    limits: Limits
    loss: float = 0.0
    read_rows: int = 0
    read_tokens: int = 0
    tokens: int = 0  # that were read and bear loss; what follows is summed over them
    entropy: float = 0.0
    divergence: float = 0.0
    clipped: int = 0
    max_log_ratio: float = 0.0

    def __post_init__(self) -> None:
        size = batch_size(self.rows)
        self._counted = [
            (row, token_share(row.length, row.part, size=size, objective=self.objective))
            for row in self.rows
            if row.length and (row.advantage or self.reference is not None)
        ]
        self._referred: list[torch.Tensor] = []

    def backward(self) -> None:
        """Add the gradient of the loss to the policy's parameters."""
        sequences = [row.sequence for row, _ in self._counted]
        temperature = self.objective.temperature
        if self.reference is not None:
            self._referred = token_logprobs(
                self.reference, sequences, temperature=temperature, limits=self.limits
            )
        self.read_rows = len(sequences)
        self.read_tokens = read_sequences(
            self.policy, sequences, self._visit, temperature=temperature, limits=self.limits
        )

    def _visit(self, places: Sequence[int], scores: TokenScores) -> torch.Tensor:
        """The loss of some sequences; tokens that were not written are left out from here."""
        import torch

        device = scores.logprobs.device
        chosen = [self._counted[place] for place in places]
        sequences = [row.sequence for row, _ in chosen]
        written = torch.tensor([one for s in sequences for one in s.written], device=device)
        counts = torch.tensor([sum(one.written) for one in sequences], device=device)

        def spread(values: Sequence[float]) -> torch.Tensor:
            return torch.tensor(values, device=device).repeat_interleave(counts)

        logprobs = scores.logprobs[written]
        sampled = torch.tensor([one for s in sequences for one in s.logprobs], device=device)
        sampled = sampled[written]
        old = logprobs.detach() if self.objective.old_logprobs == "current" else sampled
        advantages = spread([row.advantage for row, _ in chosen])
        reference = None
        if self._referred:
            reference = torch.cat([self._referred[one] for one in places])[written]
        losses = token_losses(
            logprobs, old=old, advantages=advantages, reference=reference, objective=self.objective
        )
        now = logprobs.detach()
        self.tokens += len(now)
        self.entropy += float(scores.entropies[written].sum())
        self.clipped += int(
            is_clipped(now, old=old, advantages=advantages, objective=self.objective).sum()
        )
        if reference is not None:
            self.divergence += float(divergences(now, reference).sum())
        self.max_log_ratio = max(self.max_log_ratio, float((now - sampled).abs().max()))
        loss = (losses * spread([share for _, share in chosen])).sum()
        self.loss += float(loss.detach())
        return loss


def clipped_norm(policy: Policy, limit: float = 0.0) -> float:
    """The norm of the gradient, which is clipped to a limit, unless that is 0; 0 without any."""
    import torch

    gradients = [one for one in policy.trainable if one.grad is not None]
    if not gradients:
        return 0.0
    return float(torch.nn.utils.clip_grad_norm_(gradients, limit or math.inf))


def refuse_broken(policy: Policy, step: int) -> None:
    """Stop when a step has made a weight that is no number, which no later step would mend.

    Raises:
        DivergedError: There is such a weight.
    """
    import torch

    with torch.no_grad():
        norms = torch.stack([torch.linalg.vector_norm(one.float()) for one in policy.trainable])
        if bool(norms.isfinite().all()):
            return
    raise DivergedError(
        f"after step {step} a weight is no finite number, though the gradient was; go on from the "
        "last checkpoint with a lower learning rate",
        step=step,
    )
