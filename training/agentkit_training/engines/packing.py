"""Reading a prompt once for all answers to it: one sequence, a mask that keeps answers apart.

A group's G rollouts share their prompt. Padded, it is read G times; packed, once, followed by the
G completions, each of which sees the prompt and itself, at the positions it would have alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

if TYPE_CHECKING:
    import torch


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


def packed_logprobs(policy: Policy, pack: Pack, *, temperature: float = 1.0) -> torch.Tensor:
    """The log-probability of each token of the completions, one completion after another.

    Args:
        policy: The model; its gradient is kept where the caller wants one.
        pack: What to read.
        temperature: That the tokens were sampled at.

    Returns:
        float32, as long as all completions together.
    """
    import torch

    device = policy.device
    ids = torch.tensor([[*pack.prompt, *(t for one in pack.completions for t in one)]])
    output = policy.model(
        input_ids=ids.to(device),
        position_ids=_positions(pack)[None].to(device),
        attention_mask=_mask(pack, policy.model.dtype).to(device),
        logits_to_keep=_predictors(pack).to(device),
        use_cache=False,
    )
    scores: torch.Tensor = output.logits[0].float() / temperature
    targets = ids[0, len(pack.prompt) :].to(device)
    chosen = scores.gather(1, targets[:, None])[:, 0]
    return chosen - torch.logsumexp(scores, -1)


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
