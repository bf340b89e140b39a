"""Reading a prompt once for all answers to it: one sequence, a mask that keeps answers apart.

A group's G rollouts share their prompt. Padded, it is read G times; packed, once, followed by the
G completions, each of which sees the prompt and itself, at the positions it would have alone.

It needs no cache of keys and values, so that it goes with gradient checkpointing. Without that,
reading behind prompts (``behind``) is quicker: there no completion is held against another's keys.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from agentkit_training.engines.objective import BatchSize, Limits, TokenScores, Visit, scored
from agentkit_training.generation.reading import windowed
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import Rollout, TokenSequence

if TYPE_CHECKING:
    import torch


STABILITY = 1e-4
"""Added to the deviation, as TRL does, so that near-equal rewards give no huge advantages."""


def group_advantages(rewards: Sequence[float], *, scaled: bool = True) -> list[float]:
    """A_i = (r_i - mean) / (std + 1e-4) over one group of rollouts of the same task.

    Args:
        rewards: One for each rollout of the group.
        scaled: Whether to divide by the sample standard deviation; Dr. GRPO does not.

    Returns:
        The advantages; all 0 for equal rewards and for a group of one.

    Example:
        >>> [round(one, 3) for one in group_advantages([1.0, 0.0])]
        [0.707, -0.707]
        >>> group_advantages([1.0, 1.0])
        [0.0, 0.0]
    """
    if len(rewards) < 2 or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    spread = stdev(rewards) + STABILITY if scaled else 1.0
    return [(reward - mean) / spread for reward in rewards]


def weighted(advantages: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Each advantage times its diagnostic weight (SEAL, Eq. 12); positive weights keep the sign.

    Raises:
        ValueError: A weight is not positive, or there are not as many as advantages.
    """
    if any(weight <= 0 for weight in weights):
        raise ValueError(f"a weight is {min(weights)}; only positive ones keep the sign")
    return [one * weight for one, weight in zip(advantages, weights, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRow:
    """A sequence and how much more, or less, likely it is to become.

    Attributes:
        sequence: The tokens.
        advantage: Of the rollout it belongs to, weight included.
        part: Which part of its rollout's written tokens it holds; those of a rollout sum to 1.
    """

    sequence: TokenSequence
    advantage: float
    part: float = 1.0

    @property
    def length(self) -> int:
        """Tokens that bear loss."""
        return sum(self.sequence.written)


def groups(rollouts: Iterable[Rollout]) -> list[list[Rollout]]:
    """The attempts at each task, tasks in the order in which they first come."""
    found: dict[str, list[Rollout]] = {}
    for one in rollouts:
        found.setdefault(one.task_id, []).append(one)
    return list(found.values())


def training_rows(rollouts: Sequence[Rollout], *, scaled: bool = True) -> list[TrainingRow]:
    """The rows of a batch, group by group.

    All attempts at a task in one step are one group, also those that were asked for again.
    Rollouts with a fault are left out, of the group's mean as well.

    Args:
        rollouts: Those of a step.
        scaled: Whether advantages are divided by the group's deviation.
    """
    rows: list[TrainingRow] = []
    for group in groups(rollouts):
        sound = [one for one in group if not one.fault]
        plain = group_advantages([one.reward for one in sound], scaled=scaled)
        advantages = weighted(plain, [one.weight for one in sound])
        rows += [
            TrainingRow(sequence=sequence, advantage=advantage, part=part)
            for one, advantage in zip(sound, advantages, strict=True)
            for sequence, part in zip(one.sequences, _parts(one.sequences), strict=True)
        ]
    return rows


def batch_size(rows: Iterable[TrainingRow]) -> BatchSize:
    """How many outputs and tokens there are in the rows."""
    found = list(rows)
    return BatchSize(
        outputs=math.fsum(row.part for row in found), tokens=sum(row.length for row in found)
    )


def _parts(sequences: Sequence[TokenSequence]) -> list[float]:
    """Which part of the written tokens each sequence holds; equal parts where there are none."""
    lengths = [sum(one.written) for one in sequences]
    whole = sum(lengths)
    return [one / whole if whole else 1 / len(lengths) for one in lengths]


def mini_batches(
    rows: Sequence[TrainingRow], *, count: int, seed: tuple[int, ...]
) -> list[list[TrainingRow]]:
    """The rows in ``count`` parts of about the same number of prompts, in an order of the seed.

    Rows with equal prompts stay together: they are read together, and their advantages balance.

    Args:
        rows: The rows of a step.
        count: Parts; there are fewer where there are fewer prompts, and one at least.
        seed: Of the order.
    """
    by_prompt: dict[tuple[int, ...], list[TrainingRow]] = {}
    for row in rows:
        by_prompt.setdefault(row.sequence.prompt, []).append(row)
    found = list(by_prompt.values())
    random.Random(str(seed)).shuffle(found)  # noqa: S311 - not for secrets
    parts = max(1, min(count, len(found)))
    return [[row for group in found[part::parts] for row in group] for part in range(parts)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pack:
    """Sequences with the same prompt, as one input.

    Attributes:
        prompt: The prompt.
        completions: What follows it, in each sequence.
    """

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.prompt) + sum(map(len, self.completions))


def packs(
    sequences: Sequence[TokenSequence], *, max_tokens: int
) -> Iterator[tuple[list[int], Pack]]:
    """Sequences with equal prompts together, as many as fit into ``max_tokens``.

    Args:
        sequences: What to pack.
        max_tokens: Longest pack; a sequence that is longer by itself is a pack of its own.

    Yields:
        The places of the sequences, and the pack of them.
    """
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for place, sequence in enumerate(sequences):
        by_prompt.setdefault(sequence.prompt, []).append(place)
    for prompt, places in by_prompt.items():
        chosen: list[int] = []
        size = len(prompt)
        for place in places:
            length = len(sequences[place].completion)
            if chosen and size + length > max_tokens:
                yield chosen, _pack(prompt, sequences, chosen)
                chosen, size = [], len(prompt)
            chosen.append(place)
            size += length
        yield chosen, _pack(prompt, sequences, chosen)


def _pack(
    prompt: tuple[int, ...], sequences: Sequence[TokenSequence], places: Sequence[int]
) -> Pack:
    return Pack(prompt=prompt, completions=tuple(sequences[one].completion for one in places))


def read_packed(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    visit: Visit,
    *,
    temperature: float,
    limits: Limits,
) -> int:
    """See ``read_sequences``. A model of sliding windows reads each sequence by itself."""
    read = 0
    filled = [place for place, sequence in enumerate(sequences) if sequence.completion]
    vocabulary = int(policy.model.config.get_text_config().vocab_size)
    most = min(limits.tokens, limits.logits // vocabulary)
    found = packs(
        [sequences[place] for place in filled], max_tokens=0 if windowed(policy) else most
    )
    for chosen, pack in found:
        read += len(pack)
        loss = visit([filled[one] for one in chosen], packed_scores(policy, pack, temperature))
        if loss is not None and loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    return read


def packed_scores(policy: Policy, pack: Pack, temperature: float) -> TokenScores:
    """The scores of the tokens of the completions, one completion after another."""
    import torch

    device = policy.device
    ids = torch.tensor([[*pack.prompt, *(t for one in pack.completions for t in one)]])
    is_plain = len(pack.completions) == 1  # no other to be kept apart from
    output = policy.model(
        input_ids=ids.to(device),
        position_ids=_positions(pack)[None].to(device),
        attention_mask=None if is_plain else _mask(pack, policy.model.dtype).to(device),
        logits_to_keep=_predictors(pack).to(device),
        use_cache=False,
    )
    targets = ids[0, len(pack.prompt) :].to(device)
    return scored(output.logits[0], targets, temperature=temperature)


def _positions(pack: Pack) -> torch.Tensor:
    import torch

    start = len(pack.prompt)
    parts = [torch.arange(start)]
    parts += [torch.arange(start, start + len(one)) for one in pack.completions]
    return torch.cat(parts)


def _predictors(pack: Pack) -> torch.Tensor:
    """Where each completion token is predicted: the token before it, or the prompt's last."""
    import torch

    parts, offset = [], len(pack.prompt)
    for one in pack.completions:
        if one:
            parts.append(torch.tensor([len(pack.prompt) - 1]))
            parts.append(torch.arange(offset, offset + len(one) - 1))
        offset += len(one)
    return torch.cat(parts)


def _mask(pack: Pack, dtype: torch.dtype) -> torch.Tensor:
    """What each token sees, as an additive mask of shape (1, 1, length, length)."""
    import torch

    size, start = len(pack), len(pack.prompt)
    owner = torch.zeros(size, dtype=torch.long)  # 0 for the prompt, then one for each completion
    offset = start
    for number, one in enumerate(pack.completions, start=1):
        owner[offset : offset + len(one)] = number
        offset += len(one)
    sees = (owner[None, :] == 0) | (owner[:, None] == owner[None, :])
    sees &= torch.ones(size, size, dtype=torch.bool).tril()
    mask = torch.zeros(size, size, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)
    return mask[None, None]
