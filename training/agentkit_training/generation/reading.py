"""Reading prompts into a cache of keys and values, each token as seldom as it can be.

What is read here is gone on from by decoding, and by the update, which reads the answers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache


@dataclass(frozen=True, kw_only=True, slots=True)
class Stem:
    """A beginning, and the prompts that have it.

    Attributes:
        length: Its tokens; 0 when the prompts are read each by itself.
        places: Of the prompts.
    """

    length: int
    places: tuple[int, ...]


def stems(prompts: Sequence[tuple[int, ...]], *, least: int = 16) -> list[Stem]:
    """The beginnings that leave the fewest tokens to be read.

    Prompts in order of their tokens stand beside those that they share most with, so that the best
    stems are of neighbours: for k neighbours that agree on s tokens, (k - 1) s are saved.

    Args:
        prompts: All different and none empty. At least one token of each stays its own.
        least: Tokens that must be saved for a stem; fewer are not worth a pass of their own.

    Returns:
        Stems that hold every prompt once. A prompt on its own has a stem of length 0.

    Example:
        >>> [(stem.length, stem.places) for stem in stems([(1, 2, 3), (7,), (1, 2, 4)], least=1)]
        [(2, (0, 2)), (0, (1,))]
    """
    order = sorted(range(len(prompts)), key=lambda place: prompts[place])
    agreed = [_agreed(prompts[one], prompts[two]) for one, two in pairwise(order)]
    best = [0] * (len(order) + 1)
    cut = list(range(-1, len(order)))  # where the last group of the first n prompts begins
    for end in range(1, len(order) + 1):
        best[end], cut[end] = best[end - 1], end - 1
        length = len(prompts[order[end - 1]]) - 1
        for start in range(end - 2, -1, -1):
            length = min(length, agreed[start], len(prompts[order[start]]) - 1)
            if not length:
                break
            saved = (end - start - 1) * length
            if saved >= least and best[start] + saved > best[end]:
                best[end], cut[end] = best[start] + saved, start
    return _grouped(prompts, order, cut)


def _grouped(
    prompts: Sequence[tuple[int, ...]], order: Sequence[int], cut: Sequence[int]
) -> list[Stem]:
    found: list[Stem] = []
    end = len(order)
    while end:
        places = tuple(order[cut[end] : end])
        if len(places) == 1:
            length = 0
        else:  # in order, the first and the last share what all share
            first, last = prompts[places[0]], prompts[places[-1]]
            shortest = min(len(prompts[place]) for place in places)
            length = min(_agreed(first, last), shortest - 1)
        found.append(Stem(length=length, places=places))
        end = cut[end]
    return found[::-1]


def _agreed(one: Sequence[int], two: Sequence[int]) -> int:
    """How many tokens both begin with."""
    if one[: len(two)] == two[: len(one)]:
        return min(len(one), len(two))
    low, high = 0, min(len(one), len(two))
    while low + 1 < high:  # the slices agree up to low, and not up to high
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == two[:middle] else (low, middle)
    return low


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


def padding_mask(
    policy: Policy, own: torch.Tensor, *, before: torch.Tensor | None = None
) -> torch.Tensor | None:
    """What the model is told about padding; None where there is none.

    Where gradients are on it is a mask for each pair of columns, in which padding sees itself: of a
    token that sees nothing, as padding before an example, CUDA's attention gives a gradient that is
    no number. Models with windows of attention make such masks themselves and get the plain one.

    Args:
        policy: The model.
        own: 1 for tokens and 0 for padding in the columns that are read, of shape (rows, columns).
        before: The same for what a cache holds before them.
    """
    import torch

    whole = own if before is None else torch.cat([before, own], 1)
    if bool(whole.all()):
        return None
    if windowed(policy) or not torch.is_grad_enabled():
        return whole
    new, held = own.shape[1], whole.shape[1]
    earlier = torch.ones(new, held, dtype=torch.bool, device=own.device).tril(held - new)
    sees = earlier & ((whole == 1)[:, None, :] | (own == 0)[:, :, None])
    dtype = policy.model.dtype
    mask = torch.zeros(sees.shape, dtype=dtype, device=own.device)
    return mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]


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
    device = policy.device
    output = policy.model(
        input_ids=ids.to(device),
        attention_mask=padding_mask(policy, own.to(device), before=before),
        position_ids=(begun[:, None] + own.cumsum(1) - 1).clamp(min=0).to(device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=last_columns(ids, 1).to(device),
    )
    logits: torch.Tensor = output.logits[:, -1]
    return logits
