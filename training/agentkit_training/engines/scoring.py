"""``read_sequences``: the one way to the scores of sequences, in pieces that fit into memory."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.objective import Limits, TokenScores, Visit, scored
from agentkit_training.engines.packing import read_packed
from agentkit_training.generation.reading import PromptReading, read_prompts
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.samples import TokenSequence

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache


_LOOKED_AT = 8  # a token that is only attended to costs about an eighth of one that is read
_LIKE = 0.7  # a completion that is shorter than this share of the longest begins another piece,
_WORTH_ONE = 512  # when the piece has more tokens than these


def read_behind_prompts(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    visit: Visit,
    *,
    temperature: float,
    limits: Limits,
) -> int:
    """See ``read_sequences``."""
    read, vocabulary = 0, int(policy.model.config.get_text_config().vocab_size)
    for prompts, members in _batches(sequences, limits):
        cut = _Cut(read_prompts(policy, prompts))
        read += cut.reading.read_tokens
        rows = [(place, row) for row, places in enumerate(members) for place in places]
        for piece in _pieces(rows, sequences, vocabulary, limits):
            places = [place for place, _ in piece]
            chosen = [sequences[place].completion for place in places]
            prompt_rows = [row for _, row in piece]
            scores, count = _read(policy, cut, chosen, prompt_rows, temperature=temperature)
            read += count
            loss = visit(places, scores)
            if loss is not None and loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
        cut.finish()
    return read


def _batches(
    sequences: Sequence[TokenSequence], limits: Limits
) -> Iterator[tuple[list[tuple[int, ...]], list[list[int]]]]:
    """Prompts to be read together, with the places of the sequences behind each."""
    behind: dict[tuple[int, ...], list[int]] = {}
    for place, sequence in enumerate(sequences):
        if sequence.completion:
            behind.setdefault(sequence.prompt, []).append(place)
    prompts: list[tuple[int, ...]] = []
    longest = following = 0
    for prompt, places in behind.items():
        size = sum(len(sequences[place].completion) for place in places)
        widest = max(longest, len(prompt))
        if prompts and ((len(prompts) + 1) * widest + following + size > limits.tokens):
            yield prompts, [behind[one] for one in prompts]
            prompts, widest, following = [], len(prompt), 0
        prompts.append(prompt)
        longest, following = widest, following + size
    if prompts:
        yield prompts, [behind[one] for one in prompts]


def _pieces(
    rows: Sequence[tuple[int, int]],
    sequences: Sequence[TokenSequence],
    vocabulary: int,
    limits: Limits,
) -> Iterator[list[tuple[int, int]]]:
    """Completions to be read together, those of like length beside each other."""
    ordered = sorted(rows, key=lambda row: -len(sequences[row[0]].completion))
    piece: list[tuple[int, int]] = []
    width = beside = 0
    for row in ordered:
        sequence = sequences[row[0]]
        if piece:
            beside = max(beside, len(sequence.prompt) // _LOOKED_AT)
            count = len(piece) + 1
            is_full = count * (width + beside) > limits.tokens
            is_full |= count * width * vocabulary > limits.logits
            is_short = len(sequence.completion) < _LIKE * width and len(piece) * width > _WORTH_ONE
            if is_full or is_short:
                yield piece
                piece = []
        if not piece:
            width, beside = len(sequence.completion), len(sequence.prompt) // _LOOKED_AT
        piece.append(row)
    if piece:
        yield piece


@dataclass
class _Cut:
    """A reading of prompts, cut from what is read behind it."""

    reading: PromptReading

    def __post_init__(self) -> None:

        self._roots: list[torch.Tensor] = []
        self._leaves: list[torch.Tensor] = []
        self.first = self._leaf(self.reading.logits)
        self._layers = [
            None if layer.keys is None else (self._leaf(layer.keys), self._leaf(layer.values))
            for layer in self.reading.cache.layers
        ]

    def _leaf(self, root: torch.Tensor) -> torch.Tensor:
        leaf = root.detach()
        if root.requires_grad:
            leaf.requires_grad_()
            self._roots.append(root)
            self._leaves.append(leaf)
        return leaf

    def cache(self, rows: torch.Tensor) -> DynamicCache:
        """The keys and values of the prompts ``rows``, to be written behind."""
        cache = copy.copy(self.reading.cache)
        cache.layers = [copy.copy(layer) for layer in cache.layers]
        for layer, leaves in zip(cache.layers, self._layers, strict=True):
            if leaves is not None:
                layer.keys, layer.values = (self.of(leaf, rows) for leaf in leaves)
        return cache

    def of(self, leaf: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The entries of the prompts ``rows``; no copy where there is one prompt."""
        if len(leaf) == 1:
            return leaf.expand(len(rows), *leaf.shape[1:])
        return leaf[rows]

    def finish(self) -> None:
        """Go back through the prompts, with the gradient that came to the cut."""
        import torch

        pairs = [
            (root, leaf.grad)
            for root, leaf in zip(self._roots, self._leaves, strict=True)
            if leaf.grad is not None
        ]
        if pairs:
            torch.autograd.backward([root for root, _ in pairs], [grad for _, grad in pairs])


def _read(
    policy: Policy,
    cut: _Cut,
    completions: Sequence[tuple[int, ...]],
    prompt_rows: Sequence[int],
    *,
    temperature: float,
) -> tuple[TokenScores, int]:
    """The scores of completions, the first tokens from the prompts' own logits."""
    import torch

    device = policy.device
    width = max(map(len, completions))
    ids = torch.full((len(completions), width), policy.pad_id)
    for number, one in enumerate(completions):  # behind them: what follows is never looked at
        ids[number, : len(one)] = torch.tensor(one)
    ids = ids.to(device)
    rows = torch.tensor(prompt_rows, device=device)
    parts = [scored(cut.of(cut.first, rows)[:, None], ids[:, :1], temperature=temperature)]
    if width > 1:
        logits = _logits_behind(policy, cut, ids[:, :-1], rows)
        parts.append(scored(logits, ids[:, 1:], temperature=temperature))
    lengths = torch.tensor([len(one) for one in completions], device=device)
    is_token = torch.arange(width, device=device)[None] < lengths[:, None]
    scores = TokenScores(
        logprobs=torch.cat([part.logprobs for part in parts], 1)[is_token],
        entropies=torch.cat([part.entropies for part in parts], 1)[is_token],
    )
    return scores, len(completions) * (width - 1)


def _logits_behind(
    policy: Policy, cut: _Cut, ids: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    import torch

    mask = cut.reading.mask[rows]
    whole = torch.nn.functional.pad(mask, (0, ids.shape[1]), value=1)
    start = cut.reading.lengths[rows]
    output = policy.model(
        input_ids=ids,
        attention_mask=None if bool(mask.all()) else whole,
        position_ids=start[:, None] + torch.arange(ids.shape[1], device=ids.device)[None],
        past_key_values=cut.cache(rows),
        use_cache=True,
    )
    logits: torch.Tensor = output.logits
    return logits


def read_sequences(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    visit: Visit,
    *,
    temperature: float = 1.0,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> int:
    """Read sequences piece by piece, each distinct prompt once, and go back through every loss.

    Where gradients are on, the gradient of the losses that ``visit`` gives is added to the policy's
    parameters, piece by piece, so that memory is bounded by a piece and the prompts before it.

    A model with gradient checkpointing keeps no cache while it learns; its sequences are packed
    behind their prompt instead, see ``packing``.

    Args:
        policy: The model.
        sequences: What to read. Those with an empty completion are passed over.
        visit: Told of every other sequence once, some at a time.
        temperature: That the tokens were sampled at.
        limits: How much to read at once.

    Returns:
        Tokens that went through the model, padding included.
    """
    model = policy.model  # a reference's need not tell of either
    is_packed = getattr(model, "training", False) and _computes_again(model)
    read = read_packed if is_packed else read_behind_prompts
    return read(policy, sequences, visit, temperature=temperature, limits=limits)


def _computes_again(model: Any) -> bool:
    """Whether activations are computed again, under the name that this transformers has for it."""
    for name in ("is_activation_checkpointing", "is_gradient_checkpointing"):
        if hasattr(type(model), name):
            return bool(getattr(model, name))
    return False


def token_logprobs(
    policy: Policy,
    sequences: Sequence[TokenSequence],
    *,
    temperature: float = 1.0,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> list[torch.Tensor]:
    """The log-probabilities of each sequence's completion, without a gradient.

    Returns:
        A float32 tensor for each sequence, as long as its completion, on the policy's device.
    """
    import torch

    found = [torch.zeros(0, device=policy.device)] * len(sequences)

    def keep(places: Sequence[int], scores: TokenScores) -> None:
        sizes = [len(sequences[place].completion) for place in places]
        for place, part in zip(places, torch.split(scores.logprobs, sizes), strict=True):
            found[place] = part

    with torch.no_grad():
        read_sequences(policy, sequences, keep, temperature=temperature, limits=limits)
    return found
