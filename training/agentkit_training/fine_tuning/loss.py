"""The loss of a block, and how good a policy knows examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit_training.fine_tuning.batches import IGNORED, Block, block, parts
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.generation.reading import last_columns
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


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
        attention_mask=None if bool(one.mask.all()) else one.mask.to(device),
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
