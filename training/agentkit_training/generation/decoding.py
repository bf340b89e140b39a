"""Writing many answers at once: each distinct prompt is read once, finished rows are dropped.

A row's answer depends on its prompt, its settings and its seed, and not on the rows beside it, up
to rounding: every row draws from a stream of random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch

_WORTH_DROPPING = 0.75  # rows are dropped when at most this share is still being written


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One answer to be written.

    Attributes:
        ids: The prompt's tokens.
        max_tokens: Most tokens of the answer.
        temperature: Of sampling; 0 takes the likeliest token each time.
        top_p: Mass of the likeliest tokens to choose from. Log-probabilities are those of the
            whole distribution, so that 1 is what training wants.
        seed: Of the row's own random numbers.
    """

    ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One answer.

    Attributes:
        ids: Its tokens, the end token included.
        logprobs: Natural logarithm of each token's probability at the row's temperature.
        is_ended: Whether the model ended it; it was cut at ``max_tokens`` otherwise.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    is_ended: bool


def complete(policy: Policy, prompts: Sequence[Prompt]) -> list[Completion]:
    """Write an answer to each prompt, in order.

    Args:
        policy: The model.
        prompts: What to answer. Equal prompts are read once and answered together.
    """
    import torch

    if not prompts:
        return []
    with torch.inference_mode():
        rows = _Rows(policy, prompts)
        while rows.is_writing:
            rows.advance()
    return [row.completion() for row in rows.all]


class _Row:
    """One answer while it is written."""

    def __init__(self, prompt: Prompt) -> None:
        import torch

        self.prompt = prompt
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.is_ended = False
        generator = torch.Generator().manual_seed(prompt.seed)
        self.draws: list[float] = torch.rand(prompt.max_tokens, generator=generator).tolist()

    @property
    def is_done(self) -> bool:
        return self.is_ended or len(self.ids) >= self.prompt.max_tokens

    def add(self, token: int, logprob: float, ends: frozenset[int]) -> None:
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.is_ended = token in ends

    def completion(self) -> Completion:
        return Completion(
            ids=tuple(self.ids), logprobs=tuple(self.logprobs), is_ended=self.is_ended
        )


class _Rows:
    """The batch: what each row has, the cache of keys and values, and the next logits."""

    def __init__(self, policy: Policy, prompts: Sequence[Prompt]) -> None:
        self.policy = policy
        self.all = [_Row(prompt) for prompt in prompts]
        self._live = [row for row in self.all if not row.is_done]
        if self._live:
            self._read()

    @property
    def is_writing(self) -> bool:
        return bool(self._live)

    def _read(self) -> None:
        """Read each distinct prompt once, then give every row a copy of what was read."""
        import torch
        from transformers import DynamicCache

        policy, device = self.policy, self.policy.device
        distinct = list(dict.fromkeys(row.prompt.ids for row in self._live))
        longest = max(map(len, distinct))
        ids = torch.full((len(distinct), longest), policy.pad_id)
        mask = torch.zeros_like(ids)
        for number, prompt in enumerate(distinct):  # padded on the left: all end together
            ids[number, longest - len(prompt) :] = torch.tensor(prompt)
            mask[number, longest - len(prompt) :] = 1
        self._cache = DynamicCache(config=policy.model.config)
        output = policy.model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=(mask.cumsum(1) - 1).clamp(min=0).to(device),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        place = {prompt: number for number, prompt in enumerate(distinct)}
        index = torch.tensor([place[row.prompt.ids] for row in self._live], device=device)
        self._cache.batch_select_indices(index)
        self._mask = mask.to(device)[index]
        self._logits = output.logits[index, -1]

    def advance(self) -> None:
        """Write one token of each row, and compute what the next one is drawn from."""
        import torch

        tokens = self._draw()
        self._drop_finished()
        if not self._live:
            return
        device = self.policy.device
        kept = torch.tensor([tokens[id(row)] for row in self._live], device=device)
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        output = self.policy.model(
            input_ids=kept[:, None],
            attention_mask=self._mask,
            position_ids=self._mask.sum(1, keepdim=True) - 1,
            past_key_values=self._cache,
            use_cache=True,
        )
        self._logits = output.logits[:, -1]

    def _draw(self) -> dict[int, int]:
        """The next token of each live row."""
        chosen, logprobs = draw(
            self._logits,
            temperatures=[row.prompt.temperature for row in self._live],
            top_ps=[row.prompt.top_p for row in self._live],
            draws=[row.draws[min(len(row.ids), len(row.draws) - 1)] for row in self._live],
        )
        for row, token, logprob in zip(self._live, chosen, logprobs, strict=True):
            if not row.is_done:
                row.add(token, logprob, self.policy.end_ids)
        return {id(row): token for row, token in zip(self._live, chosen, strict=True)}

    def _drop_finished(self) -> None:
        """Take finished rows out of the batch, once they are worth a copy of the cache."""
        import torch

        going = [number for number, row in enumerate(self._live) if not row.is_done]
        if going and len(going) > _WORTH_DROPPING * len(self._live):
            return
        self._live = [self._live[number] for number in going]
        if going:
            index = torch.tensor(going, device=self.policy.device)
            self._cache.batch_select_indices(index)
            self._mask = self._mask[index]


def draw(
    logits: torch.Tensor,
    *,
    temperatures: Sequence[float],
    top_ps: Sequence[float],
    draws: Sequence[float],
) -> tuple[list[int], list[float]]:
    """One token for each row by inverting its cumulated probabilities.

    Args:
        logits: Of shape (rows, vocabulary).
        temperatures: One for each row; 0 takes the likeliest token.
        top_ps: Mass of the likeliest tokens to choose from, for each row.
        draws: A number in [0, 1) for each row.

    Returns:
        The tokens, and their log-probabilities under the whole distribution at the row's
        temperature (at temperature 1 where it is 0).
    """
    import torch

    device = logits.device
    heat = torch.tensor([heat or 1.0 for heat in temperatures], device=device)
    scores = logits.float() / heat[:, None]
    logprobs = torch.log_softmax(scores, -1)
    chosen = logprobs.argmax(-1)
    if any(temperatures):
        wanted = torch.tensor(draws, device=device, dtype=torch.float64)
        sampled = _inverted(logprobs, wanted, top_ps)
        is_sampled = torch.tensor([bool(heat) for heat in temperatures], device=device)
        chosen = torch.where(is_sampled, sampled, chosen)
    picked = logprobs.gather(1, chosen[:, None])[:, 0]
    return chosen.tolist(), picked.tolist()


def _inverted(
    logprobs: torch.Tensor, wanted: torch.Tensor, top_ps: Sequence[float]
) -> torch.Tensor:
    """The token at which the cumulated probability passes ``wanted``."""
    import torch

    probabilities = logprobs.double().exp()
    if min(top_ps) < 1:
        probabilities = _nucleus(probabilities, top_ps)
    cumulated = probabilities.cumsum(-1)
    target = wanted[:, None] * cumulated[:, -1:]
    found = torch.searchsorted(cumulated, target, right=True)[:, 0]
    return found.clamp(max=logprobs.shape[1] - 1)


def _nucleus(probabilities: torch.Tensor, top_ps: Sequence[float]) -> torch.Tensor:
    """Zero for all but the likeliest tokens that together reach the row's mass."""
    import torch

    ordered, order = probabilities.sort(-1, descending=True)
    before = ordered.cumsum(-1) - ordered
    mass = torch.tensor(top_ps, device=probabilities.device)[:, None]
    kept = torch.where(before < mass, ordered, torch.zeros_like(ordered))
    return torch.zeros_like(probabilities).scatter(-1, order, kept)
