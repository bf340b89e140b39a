"""Reading prompts into a cache of keys and values, each token as seldom as it can be.

What is read here is gone on from by decoding, and by the update, which reads the answers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.generation.sharing import Stem, stems
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache


@dataclass(frozen=True, kw_only=True)
class PromptReading:
    """Prompts that were read, one row each.

    Attributes:
        cache: Keys and values. Rows of different lengths are padded, before or within them.
        mask: 1 for tokens, 0 for padding, of shape (prompts, columns).
        lengths: Tokens of each prompt.
        logits: Of the token that follows, of shape (prompts, vocabulary).
        read_tokens: Tokens that went through the model, padding included.
    """

    cache: DynamicCache
    mask: torch.Tensor
    lengths: torch.Tensor
    logits: torch.Tensor
    read_tokens: int


def read_prompts(policy: Policy, prompts: Sequence[tuple[int, ...]]) -> PromptReading:
    """Read different prompts together; what several begin with is read once.

    Gradients are kept where the caller's mode keeps them.

    Args:
        policy: The model.
        prompts: All different and none empty.
    """
    import torch
    from transformers import DynamicCache

    device = policy.device
    found = _stems(policy, prompts)
    shared = [stem for stem in found if stem.length]
    cache = DynamicCache(config=policy.model.config)
    read, mask = 0, torch.zeros(len(prompts), 0, dtype=torch.long, device=device)
    begun = torch.zeros(len(prompts), dtype=torch.long)
    if shared:
        beginnings = [prompts[stem.places[0]][: stem.length] for stem in shared]
        row = torch.zeros(len(prompts), dtype=torch.long)
        for number, stem in enumerate(shared):
            row[list(stem.places)] = number
            begun[list(stem.places)] = stem.length
        first = left_padded(beginnings, policy.pad_id)
        _advance(policy, cache, *first, begun=torch.zeros(len(shared), dtype=torch.long))
        cache.batch_select_indices(row.to(device))
        mask = (first[1][row] * (begun > 0)[:, None]).to(device)
        read += first[0].numel()
    rests = [prompt[int(start) :] for prompt, start in zip(prompts, begun, strict=True)]
    ids, own = left_padded(rests, policy.pad_id)
    logits = _advance(policy, cache, ids, own, begun=begun, before=mask)
    return PromptReading(
        cache=cache,
        mask=torch.cat([mask, own.to(device)], 1),
        lengths=torch.tensor([len(prompt) for prompt in prompts], device=device),
        logits=logits,
        read_tokens=read + ids.numel(),
    )


def left_padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows as one tensor, padded before them so that all end together, and its mask."""
    import torch

    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), pad)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, longest - len(row) :] = torch.tensor(row)
        mask[number, longest - len(row) :] = 1
    return ids, mask


def last_columns(ids: torch.Tensor, count: int) -> torch.Tensor:
    """The last columns of an input, for which alone logits are wanted, as ``logits_to_keep``.

    A plain number says the same. The model then multiplies a slice of its hidden states, which do
    not lie side by side, and on a CPU PyTorch copies the last layer for each row: 56 MB a row for
    SmolLM2-135M.

    Args:
        ids: Of shape (rows, length).
        count: How many columns.
    """
    import torch

    length = ids.shape[1]
    return torch.arange(length - count, length)


def windowed(policy: Policy) -> bool:
    """Whether some layers see only the newest tokens, counted with the padding between them."""
    config = policy.model.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return any(kind != "full_attention" for kind in kinds)
    return getattr(config, "sliding_window", None) is not None


def _stems(policy: Policy, prompts: Sequence[tuple[int, ...]]) -> list[Stem]:
    if len(prompts) > 1 and not windowed(policy):
        return stems(prompts)
    return [Stem(length=0, places=(place,)) for place in range(len(prompts))]


def _advance(
    policy: Policy,
    cache: DynamicCache,
    ids: torch.Tensor,
    own: torch.Tensor,
    *,
    begun: torch.Tensor,
    before: torch.Tensor | None = None,
) -> torch.Tensor:
    """Read ``ids`` behind what the cache holds; the logits after the last column."""
    import torch

    device = policy.device
    whole = own.to(device) if before is None else torch.cat([before, own.to(device)], 1)
    output = policy.model(
        input_ids=ids.to(device),
        attention_mask=None if bool(whole.all()) else whole,
        position_ids=(begun[:, None] + own.cumsum(1) - 1).clamp(min=0).to(device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=last_columns(ids, 1).to(device),
    )
    logits: torch.Tensor = output.logits[:, -1]
    return logits
