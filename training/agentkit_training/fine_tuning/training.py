"""``sft``: fine-tune a policy on examples, in one process or, under ``torchrun``, in several.

The loop is short and our own; a test holds that it takes the steps of TRL's ``SFTTrainer``. What it
has beside that: a loss that is no number stops it before the step; a run goes on from a checkpoint
exactly, and is refused one of other examples; parts of similar length, so that little padding is
read; and it begins in no time, where TRL takes seconds to import and to prepare a data set, in each
round of ToolACE-R anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.errors import UsageError
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, added_up, led
from agentkit_training.engines.adam import adam_for
from agentkit_training.engines.base import OptimizerSettings, StepReport, set_rate
from agentkit_training.engines.update import clipped_norm
from agentkit_training.errors import CheckpointError, DivergedError, check_least
from agentkit_training.files import differing, load_tensors, save_tensors
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.generation.reading import last_columns, left_padded, padding_mask
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import recomputing
from agentkit_training.policy.saving import put_weights, trainable_weights
from agentkit_training.runs import ignore

if TYPE_CHECKING:
    import torch


PAPER_OPTIMIZER = OptimizerSettings(learning_rate=1e-4, schedule="cosine", warmup_ratio=0.1)
"""ToolACE-R, section 4.1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SftSettings:
    """How to fine-tune. The defaults are those of ToolACE-R, section 4.1.

    Attributes:
        optimizer: How the weights follow the gradient.
        batch_size: Examples of one optimiser step.
        epochs: How often each example is seen.
        max_tokens: Longest example; longer ones are left out and counted.
        input_tokens: Most tokens, padding included, that are read at once; a batch is read in as
            many parts as that takes. It bounds the memory and does not change what is learned.
        seed: Of the order of examples, and of dropout where the policy has any.
        gradient_checkpointing: Whether activations are computed again in the backward pass, which
            saves memory and takes a third more time.
        save_every: Steps between checkpoints, where there is a folder for them.
    """

    optimizer: OptimizerSettings = field(default_factory=lambda: PAPER_OPTIMIZER)
    batch_size: int = 64
    epochs: int = 1
    max_tokens: int = 2048
    input_tokens: int = 4096
    seed: int = 0
    gradient_checkpointing: bool = False
    save_every: int = 50

    def __post_init__(self) -> None:
        check_least(self, "batch_size", "epochs", "max_tokens", "input_tokens", "save_every")


@dataclass(frozen=True, kw_only=True, slots=True)
class SftStep(StepReport):
    """What one step did; rows are examples, and tokens are counted without padding.

    Attributes:
        steps: Steps of the whole run.
    """

    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SftReport:
    """What a run of fine-tuning did.

    Attributes:
        steps: Each step of this start, in order; those before a checkpoint are not repeated.
        examples: Examples that were trained on.
        too_long: Ids of the tasks whose example is longer than ``max_tokens``.
        resumed_at: The step at which this start went on; 0 for a fresh one.
    """

    steps: tuple[SftStep, ...] = ()
    examples: int = 0
    too_long: tuple[str, ...] = ()
    resumed_at: int = 0


Listener: TypeAlias = Callable[[SftStep], None]


IGNORED = -100
"""The label of a token that bears no loss, as PyTorch has it."""

_BUSY_TOKENS = 1024
_MOST_PADDED = 1.25


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some examples as one input, padded on the left so that all end together.

    Answers are short and stand at the end, so that logits are needed for the last few columns
    alone; with a vocabulary of 49,152 these are what takes most memory.

    Attributes:
        ids: Tokens, of shape (examples, length).
        mask: 1 for tokens, 0 for padding.
        labels: For each of the last ``width`` columns the token to be predicted, or ``IGNORED``.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor

    @property
    def width(self) -> int:
        """Columns that may bear loss."""
        return int(self.labels.shape[1])

    @property
    def positions(self) -> torch.Tensor:
        """The position of each token in its own example."""
        return (self.mask.cumsum(1) - 1).clamp(min=0)


def step_orders(count: int, *, batch_size: int, epochs: int, seed: int) -> list[list[int]]:
    """The examples of each step, as indexes.

    Each epoch has an order of its own, drawn from ``seed`` and its number; its last step may be
    smaller. So a run that goes on from a checkpoint sees what it would have seen.

    Example:
        >>> [len(step) for step in step_orders(5, batch_size=2, epochs=2, seed=0)]
        [2, 2, 1, 2, 2, 1]
    """
    orders: list[list[int]] = []
    for epoch in range(epochs):
        order = list(range(count))
        random.Random(f"{seed}:{epoch}").shuffle(order)  # noqa: S311 - an order, not a secret
        orders += [order[at : at + batch_size] for at in range(0, count, batch_size)]
    return orders


def parts(examples: Sequence[Example], *, input_tokens: int) -> Iterator[list[Example]]:
    """A step's examples in parts of similar length, each at most ``input_tokens`` with padding.

    Examples are sorted within their step alone, so that the order of learning stays random. One
    that is longer than the bound is a part of its own. A part that is large enough to keep the
    machine busy takes no example that would be padded by more than a quarter.
    """
    part: list[Example] = []
    for one in sorted(examples, key=len, reverse=True):
        longest = len(part[0]) if part else len(one)
        is_full = longest * (len(part) + 1) > input_tokens
        is_busy = longest * len(part) >= _BUSY_TOKENS
        if part and (is_full or (is_busy and longest > _MOST_PADDED * len(one))):
            yield part
            part = []
        part.append(one)
    if part:
        yield part


def block(examples: Sequence[Example], *, pad: int) -> Block:
    """Examples side by side. Loss is borne by what is written in completions, never by prompts.

    Args:
        examples: At least one.
        pad: The token to fill with; it is never attended to.
    """
    ids, mask = left_padded([(*one.prompt, *one.completion) for one in examples], pad)
    told = [zip(one.completion, one.taught, strict=True) for one in examples]
    labels, _ = left_padded(
        [[token if is_taught else IGNORED for token, is_taught in one] for one in told], IGNORED
    )
    return Block(ids=ids, mask=mask, labels=labels)


def block_loss(policy: Policy, one: Block) -> torch.Tensor:
    """The sum of ``-log p`` over the tokens that bear loss, in float32.

    Args:
        policy: The model; its gradient is kept where the caller wants one.
        one: What to read.
    """
    import torch

    device = policy.device
    is_taught = (one.labels != IGNORED).any(0)  # of a conversation's columns the fewest
    before = last_columns(one.ids, one.width + 1)[:-1]  # each token is predicted a column earlier
    output = policy.model(
        input_ids=one.ids.to(device),
        attention_mask=padding_mask(policy, one.mask.to(device)),
        position_ids=one.positions.to(device),
        logits_to_keep=before[is_taught].to(device),
        use_cache=False,
    )
    labels = one.labels[:, is_taught].to(device)
    counts = labels != IGNORED
    scores = output.logits[counts].float()  # padding of short answers is left out here
    loss: torch.Tensor = torch.nn.functional.cross_entropy(scores, labels[counts], reduction="sum")
    return loss


def mean_loss(policy: Policy, examples: Sequence[Example], *, input_tokens: int = 4096) -> float:
    """The mean of ``-log p`` over all tokens that bear loss, without learning anything."""
    import torch

    total, tokens = 0.0, 0
    with torch.inference_mode():
        for part in parts(examples, input_tokens=input_tokens):
            total += float(block_loss(policy, block(part, pad=policy.pad_id)))
            tokens += sum(one.loss_tokens for one in part)
    return total / max(1, tokens)


def sft(
    policy: Policy,
    examples: Sequence[Example],
    settings: SftSettings = SftSettings(),
    *,
    folder: Path | None = None,
    listen: Listener = ignore,
    ranks: Ranks = ALONE,
) -> SftReport:
    """Make the gold answers likelier; the policy's trainable weights change.

    Args:
        policy: What learns: all its weights, or its LoRA adapters where only these are trainable.
        examples: What it learns from.
        settings: How.
        folder: Where checkpoints are kept; a run that finds one there goes on from it. None keeps
            none.
        listen: Told of each step, with the new weights in place.
        ranks: The processes that read each batch together; rank 0 keeps the checkpoints.

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
    kept = fitting(examples, settings)
    run = _Run(policy=policy, examples=kept, settings=settings, ranks=ranks)
    resumed_at = 0 if folder is None else run.restore(folder)
    steps = run.steps(resumed_at, folder, listen)
    too_long = tuple(one.task_id for one in examples if len(one) > settings.max_tokens)
    return SftReport(steps=steps, examples=len(kept), too_long=too_long, resumed_at=resumed_at)


def fitting(examples: Sequence[Example], settings: SftSettings) -> list[Example]:
    """The examples that are not too long.

    Raises:
        UsageError: There are none.
    """
    kept = [one for one in examples if len(one) <= settings.max_tokens]
    if not kept:
        raise UsageError(
            f"there is nothing to train on: of {len(examples)} examples none has at most "
            f"{settings.max_tokens} tokens; raise max_tokens, or select other tasks"
        )
    return kept


_FILE = "sft.pt"
_FREE = ("save_every", "input_tokens", "gradient_checkpointing")
"""Settings with which the same is learned."""


def steps_taken(folder: Path) -> int:
    """How many steps had been taken when the checkpoint in a folder was written; 0 without one.

    Raises:
        CheckpointError: It can not be read.
    """
    path = folder / _FILE
    return int(load_tensors(path)["step"]) if path.is_file() else 0


def _read(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity with its settings one by one, so that a message names what differs."""
    return {**identity, "settings": json.loads(identity["settings"])}


@dataclass(kw_only=True)
class _Run:
    """One start of a run."""

    policy: Policy
    examples: Sequence[Example]
    settings: SftSettings
    ranks: Ranks
    adam: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        self.adam = adam_for(self.policy, self.settings.optimizer)

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for this run to go on from another's checkpoint."""
        digest = hashlib.sha256()
        for one in self.examples:
            digest.update(repr((one.task_id, one.prompt, one.completion, *one.written)).encode())
        settings = json.dumps(asdict(self.settings) | dict.fromkeys(_FREE), sort_keys=True)
        return {"policy": self.policy.name, "settings": settings, "examples": digest.hexdigest()}

    def restore(self, folder: Path) -> int:
        """Take up a checkpoint; the steps that have been taken, 0 where there is none.

        Raises:
            CheckpointError: It can not be read, or is that of another run.
        """
        path = folder / _FILE
        if not path.is_file():
            return 0
        state = load_tensors(path)
        if found := list(differing(_read(state["identity"]), _read(self.identity))):
            told = "; ".join(f"{at.place} was {at.kept} and is {at.given}" for at in found)
            raise CheckpointError(
                f"{path} is the checkpoint of another run: {told}. Take another folder, or delete "
                "it to begin anew"
            )
        put_weights(self.policy, state["weights"], source=str(path))
        self.adam.load_state_dict(state["adam"])
        return int(state["step"])

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
                led(self.ranks, partial(self._save, folder, step))
            listen(done[-1])
        return tuple(done)

    def _step(self, step: int, steps: int, chosen: Sequence[Example]) -> SftStep:
        import torch

        started = time.perf_counter()
        rate = set_rate(self.adam, self.settings.optimizer, step=step, steps=steps)
        self.policy.model.train()
        try:
            with torch.random.fork_rng():
                own = self.ranks.rank << 40  # each process draws its own dropout
                torch.manual_seed(self.settings.seed * 1_000_003 + step + own)
                loss = self._backward(chosen)
            norm = clipped_norm(self.policy, self.settings.optimizer.max_gradient_norm)
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise DivergedError(
                    f"at step {step} the loss is {loss} and the norm of the gradient {norm}; the "
                    "step was not taken, and the checkpoint before is kept. Lower the learning "
                    "rate, or clip harder",
                    step=step,
                )
            self.adam.step()
        finally:
            self.adam.zero_grad()
            self.policy.model.eval()
        return SftStep(
            step=step,
            steps=steps,
            loss=loss,
            gradient_norm=norm,
            learning_rate=rate,
            rows=len(chosen),
            read_rows=len(chosen),
            loss_tokens=sum(one.loss_tokens for one in chosen),
            read_tokens=sum(map(len, chosen)),
            update_seconds=time.perf_counter() - started,
        )

    def _backward(self, chosen: Sequence[Example]) -> float:
        """Add up the gradient, part by part; the mean loss.

        Several processes share the examples out, and each has the gradient of all in the end.
        """
        import torch

        tokens = sum(one.loss_tokens for one in chosen)
        own = chosen[self.ranks.rank :: self.ranks.world]
        loss = 0.0
        with recomputing(self.policy, wanted=self.settings.gradient_checkpointing):
            for part in parts(own, input_tokens=self.settings.input_tokens):
                one = block(part, pad=self.policy.pad_id)
                part_loss = block_loss(self.policy, one) / tokens
                torch.autograd.backward(part_loss)
                loss += float(part_loss.detach())
        told = torch.tensor(loss, dtype=torch.float64, device=self.policy.device)
        for weight in self.policy.trainable if self.ranks.world > 1 else ():
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        added_up([told, *(weight.grad for weight in self.policy.trainable)], self.ranks)
        return float(told)

    def _save(self, folder: Path, step: int, _: Beat) -> None:
        shortest = min(self.examples, key=len)
        loss = mean_loss(self.policy, [shortest])  # weights may be numbers and give none
        weights = trainable_weights(self.policy)
        is_finite = all(bool(one.isfinite().all()) for one in weights.values())
        if not (is_finite and math.isfinite(loss)):
            raise DivergedError(
                f"after step {step} the policy gives no numbers any more (the loss of an example "
                f"is {loss}), so no checkpoint was written; the one before is kept. Begin anew "
                "with a lower learning rate, or clip harder",
                step=step,
            )
        state = {"step": step + 1, "identity": self.identity, "weights": weights}
        save_tensors({**state, "adam": self.adam.state_dict()}, folder / _FILE)
