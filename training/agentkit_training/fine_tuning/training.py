"""``sft``: fine-tune a policy on examples, in one process.

The loop is short and our own, beside ``sft_with_trl`` (TRL's ``SFTTrainer``, on the same examples
and with the same steps), which is the way to several processes. What this one has: coarse weights
are moved through float32 copies, so that small steps are not rounded away; a loss that is no
number stops it before the step; a run goes on from a checkpoint exactly, and is refused one of
other examples; parts of similar length, so that little padding is read; and it begins in no time,
where TRL takes seconds to import and to prepare a data set, in each round of ToolACE-R anew.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import UsageError
from agentkit_training.engines.schedule import rate_factor
from agentkit_training.errors import DivergedError
from agentkit_training.fine_tuning.batches import block, parts, step_orders
from agentkit_training.fine_tuning.checkpoint import RunIdentity, restore, save
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.loss import block_loss, mean_loss
from agentkit_training.fine_tuning.master_weights import MasterWeights
from agentkit_training.fine_tuning.settings import Listener, SftReport, SftSettings, SftStep, ignore
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.recomputing import recomputing


def sft(
    policy: Policy,
    examples: Sequence[Example],
    settings: SftSettings = SftSettings(),  # noqa: B008 - immutable
    *,
    folder: Path | None = None,
    listen: Listener = ignore,
) -> SftReport:
    """Make the gold answers likelier; the policy's trainable weights change.

    Args:
        policy: What learns: all its weights, or its LoRA adapters where only these are trainable.
        examples: What it learns from.
        settings: How.
        folder: Where checkpoints are kept; a run that finds one there goes on from it. None keeps
            none.
        listen: Told of each step, with the new weights in place.

    Raises:
        DivergedError: The loss or the gradient is not a number; the weights are those before the
            step.
        CheckpointError: A checkpoint can not be written or read, or belongs to another run.
        PolicyError: No weight is trainable.
        UsageError: There is nothing to train on.

    Example:
        >>> from agentkit_training import tiny_policy
        >>> example = Example(task_id="1", prompt=(5, 6), completion=(7, 2))
        >>> report = sft(tiny_policy(), [example], SftSettings(epochs=2))
        >>> len(report.steps)
        2
    """
    kept = [one for one in examples if len(one) <= settings.max_tokens]
    if not kept:
        raise UsageError(
            f"there is nothing to train on: of {len(examples)} examples none has at most "
            f"{settings.max_tokens} tokens; raise max_tokens, or select other tasks"
        )
    run = _Run(
        policy=policy,
        examples=kept,
        settings=settings,
        weights=MasterWeights(policy, settings.optimizer),
        identity=RunIdentity.of(policy.name, settings, kept),
    )
    resumed_at = 0
    if folder is not None:
        resumed_at = restore(folder, weights=run.weights, identity=run.identity)
    steps = run.steps(resumed_at, folder, listen)
    too_long = tuple(one.task_id for one in examples if len(one) > settings.max_tokens)
    return SftReport(steps=steps, examples=len(kept), too_long=too_long, resumed_at=resumed_at)


@dataclass(kw_only=True)
class _Run:
    """One start of a run."""

    policy: Policy
    examples: Sequence[Example]
    settings: SftSettings
    weights: MasterWeights
    identity: RunIdentity

    def steps(self, first: int, folder: Path | None, listen: Listener) -> tuple[SftStep, ...]:
        """Take the steps from ``first`` on."""
        settings = self.settings
        orders = step_orders(
            len(self.examples),
            batch_size=settings.batch_size,
            epochs=settings.epochs,
            seed=settings.seed,
        )
        done: list[SftStep] = []
        for step in range(first, len(orders)):
            chosen = [self.examples[place] for place in orders[step]]
            done.append(self._step(step, len(orders), chosen))
            is_due = (step + 1) % settings.save_every == 0 or step + 1 == len(orders)
            if folder is not None and is_due:
                self._save(folder, step)
            listen(done[-1])
        return tuple(done)

    def _step(self, step: int, steps: int, chosen: Sequence[Example]) -> SftStep:
        import torch

        started = time.perf_counter()
        rate = self.settings.optimizer.learning_rate * rate_factor(
            self.settings.optimizer, step=step, steps=steps
        )
        self.policy.model.train()
        try:
            with torch.random.fork_rng():
                torch.manual_seed(self.settings.seed * 1_000_003 + step)  # of dropout
                loss, read = self._backward(chosen)
            norm = self.weights.clipped_norm()
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise _diverged(step, f"the loss is {loss} and the norm of the gradient {norm}")
            self.weights.step(rate)
        finally:
            self.weights.forget_gradient()
            self.policy.model.eval()
        tokens = sum(map(len, chosen))
        return SftStep(
            step=step,
            steps=steps,
            loss=loss,
            gradient_norm=norm,
            learning_rate=rate,
            examples=len(chosen),
            loss_tokens=sum(one.loss_tokens for one in chosen),
            read_tokens=tokens,
            padding_tokens=read - tokens,
            seconds=time.perf_counter() - started,
        )

    def _backward(self, chosen: Sequence[Example]) -> tuple[float, int]:
        """Add up the gradient, part by part; the mean loss, and the tokens read with padding."""
        import torch

        tokens = sum(one.loss_tokens for one in chosen)
        loss, read = 0.0, 0
        with recomputing(self.policy, wanted=self.settings.gradient_checkpointing):
            for part in parts(chosen, input_tokens=self.settings.input_tokens):
                one = block(part, pad=self.policy.pad_id)
                part_loss = block_loss(self.policy, one) / tokens
                torch.autograd.backward(part_loss)
                loss += float(part_loss.detach())
                read += one.ids.numel()
        return loss, read

    def _save(self, folder: Path, step: int) -> None:
        shortest = min(self.examples, key=len)
        loss = mean_loss(self.policy, [shortest])  # weights may be numbers and give none
        if not (self.weights.is_finite() and math.isfinite(loss)):
            raise DivergedError(
                f"after step {step} the policy gives no numbers any more (the loss of an example "
                f"is {loss}), so no checkpoint was written; the one before is kept. Begin anew "
                "with a lower learning rate, or clip harder",
                step=step,
            )
        save(folder, step=step + 1, weights=self.weights, identity=self.identity)


def _diverged(step: int, what: str) -> DivergedError:
    return DivergedError(
        f"at step {step} {what}; the step was not taken, and the checkpoint before is kept. Lower "
        "the learning rate, or clip harder",
        step=step,
    )
