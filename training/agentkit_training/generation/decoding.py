"""Writing many answers at once: each distinct prompt is read once, finished rows are dropped.

A row's answer depends on its prompt, its settings and its seed, and not on the rows beside it, up
to rounding: every row draws from a stream of random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit_training.errors import PolicyError
from agentkit_training.generation.reading import read_prompts
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache


_BLOCK = 256  # tokens whose probabilities are summed before any are cumulated


def draw(
    logits: torch.Tensor,
    *,
    temperatures: torch.Tensor,
    top_ps: torch.Tensor | None,
    draws: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One token for each row.

    Args:
        logits: Of shape (rows, vocabulary), in any precision.
        temperatures: One for each row, float32; 0 takes the likeliest token.
        top_ps: Mass of the likeliest tokens to choose from, for each row; None for all of them.
        draws: A number in [0, 1) for each row, float64.

    Returns:
        The tokens, and their log-probabilities (float32) under the whole distribution at the row's
        temperature (at temperature 1 where it is 0).

    Example:
        >>> import torch
        >>> halves = torch.tensor([[0.5, 0.25, 0.25]]).log()
        >>> at = lambda one: torch.tensor([one], dtype=torch.float64)
        >>> [int(draw(halves, temperatures=torch.ones(1), top_ps=None, draws=at(u))[0])
        ...  for u in (0.0, 0.49, 0.51, 0.76)]
        [0, 0, 1, 2]
    """
    import torch

    greedy = temperatures == 0
    scores = logits.float() / torch.where(greedy, 1.0, temperatures)[:, None]
    total = torch.logsumexp(scores, -1, keepdim=True)
    probabilities = torch.exp(scores - total)
    if top_ps is not None:
        probabilities = nucleus(probabilities, top_ps)
    chosen = inverted(probabilities, draws)
    if bool(greedy.any()):
        chosen = torch.where(greedy, scores.argmax(-1), chosen)
    return chosen, (scores.gather(1, chosen[:, None]) - total)[:, 0]


def inverted(probabilities: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The token at which the cumulated probability passes ``draws`` of the whole.

    Probabilities are summed in blocks, and only the block that the number falls into is cumulated:
    in float64, so that a vocabulary of any size costs little and loses nothing. A token of
    probability 0 is never chosen.

    Args:
        probabilities: Of shape (rows, vocabulary); they need not sum to 1.
        draws: In [0, 1), one for each row, float64.
    """
    import torch

    rows, size = probabilities.shape
    filled = torch.nn.functional.pad(probabilities, (0, -size % _BLOCK))
    blocks = filled.view(rows, -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float64)
    block, left = _passed(sums, draws[:, None] * sums.sum(-1, keepdim=True))
    inside = blocks.gather(1, block[:, :, None].expand(-1, 1, _BLOCK))[:, 0].double()
    token, _ = _passed(inside, left)
    return (block * _BLOCK + token)[:, 0].clamp(max=size - 1)


def _passed(masses: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The first place whose cumulated mass is more than the target, and what is left of it there.

    Rounding may leave a target that no place passes; the last place with any mass is taken then.
    Masses that are no numbers give the last place: who drew looks at the log-probability.
    """
    import torch

    cumulated = masses.cumsum(-1)
    place = torch.searchsorted(cumulated, target, right=True)
    end = cumulated[:, -1:].contiguous()
    last = torch.searchsorted(cumulated, end)  # the first that reaches the end
    place = torch.minimum(place, last).clamp(max=masses.shape[-1] - 1)
    return place, target - (cumulated - masses).gather(1, place)


def nucleus(probabilities: torch.Tensor, top_ps: torch.Tensor) -> torch.Tensor:
    """Zero for all but the likeliest tokens that together reach the row's mass.

    The likeliest token is always kept.
    """
    import torch

    ordered, order = probabilities.double().sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    is_kept = before < top_ps[:, None]
    is_kept[:, 0] = True
    kept = torch.where(is_kept, ordered, torch.zeros_like(ordered)).to(probabilities.dtype)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)


_ROOM = 64  # columns beyond those that are needed, at least


def make_room(cache: DynamicCache) -> None:
    """Let the cache grow in place. Layers that see a window only stay as they are: they are short.

    For decoding without gradients; a tensor that a gradient needs must not be written into.
    """
    from transformers.cache_utils import DynamicLayer

    for number, layer in enumerate(cache.layers):
        if type(layer) is DynamicLayer:
            cache.layers[number] = _roomy(layer)


def _roomy(layer: Any) -> Any:
    """A layer of the same content that writes into spare columns; transformers loads in here."""
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values are the filled part of tensors that are longer."""

        keys: torch.Tensor
        values: torch.Tensor
        wholes: dict[str, torch.Tensor]

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            self.keys = self._written("keys", self.keys, key_states)
            self.values = self._written("values", self.values, value_states)
            return self.keys, self.values

        def _written(self, name: str, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
            filled, wanted = old.shape[-2], old.shape[-2] + new.shape[-2]
            whole = self.wholes.get(name)
            if whole is None or len(whole) != len(old) or whole.shape[-2] < wanted:
                size = wanted + max(_ROOM, filled // 4)
                whole = old.new_empty(*old.shape[:2], size, old.shape[-1])
                whole[:, :, :filled] = old
                self.wholes[name] = whole
            whole[:, :, filled:wanted] = new
            return whole[:, :, :wanted]

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            super().batch_select_indices(indices)
            self.wholes.clear()

    roomy = RoomyLayer()
    roomy.__dict__.update(layer.__dict__)
    roomy.wholes = {}
    return roomy


_WORTH_DROPPING = 0.75  # rows are dropped when at most this share is still being written


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One answer to be written.

    Attributes:
        ids: The prompt's tokens, at least one.
        max_tokens: Most tokens of the answer; 0 writes none.
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
        prompts: What to answer. Equal prompts are read once and answered together, and so is what
            different ones begin with.

    Raises:
        PolicyError: The model gives no probabilities: its weights have diverged.

    Example:
        >>> from agentkit_training import tiny_policy
        >>> (answer,) = complete(tiny_policy(), [Prompt(ids=(5, 6, 7), max_tokens=3)])
        >>> len(answer.ids) <= 3
        True
    """
    import torch

    found = [Completion(ids=(), logprobs=(), is_ended=False)] * len(prompts)
    asked = [place for place, prompt in enumerate(prompts) if prompt.max_tokens > 0]
    if asked:
        with torch.inference_mode():
            rows = _Rows(policy, [prompts[place] for place in asked])
            while rows.is_writing:
                rows.advance()
            for place, completion in zip(asked, rows.completions(), strict=True):
                found[place] = completion
    return found


class _Rows:
    """The batch: what is written of each row, the cache, and the logits of the next tokens.

    Tensors with one entry for each row of the batch are those of ``_select``; finished rows stay in
    the batch, and what is written of them there is not looked at, until they are worth dropping.
    """

    def __init__(self, policy: Policy, prompts: Sequence[Prompt]) -> None:
        import torch

        self._policy = policy
        self._device = device = policy.device
        longest = max(prompt.max_tokens for prompt in prompts)
        self._step = 0
        self._draws = torch.stack([_stream(prompt, longest) for prompt in prompts]).to(device)
        self._limits = torch.tensor([prompt.max_tokens for prompt in prompts], device=device)
        self._temperatures = torch.tensor([prompt.temperature for prompt in prompts], device=device)
        top_ps = torch.tensor([prompt.top_p for prompt in prompts], device=device)
        self._top_ps = top_ps if bool((top_ps < 1).any()) else None
        self._ends = torch.tensor(sorted(policy.end_ids), device=device)
        self._tokens = torch.zeros(len(prompts), longest, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(len(prompts), longest, device=device)
        self._written = self._limits.clone()  # tokens of each answer, as far as is known
        self._is_ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        self._rows = torch.arange(len(prompts), device=device)  # which answer each row is
        self._is_done = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        self._read([prompt.ids for prompt in prompts], longest)

    @property
    def is_writing(self) -> bool:
        return len(self._rows) > 0

    def _read(self, prompts: Sequence[tuple[int, ...]], longest: int) -> None:
        """Read each distinct prompt once, then give every row a copy of what was read."""
        import torch

        distinct = list(dict.fromkeys(prompts))
        reading = read_prompts(self._policy, distinct)
        place = {prompt: number for number, prompt in enumerate(distinct)}
        index = torch.tensor([place[prompt] for prompt in prompts], device=self._device)
        self._cache = reading.cache
        self._columns = reading.mask.shape[1]
        self._mask = torch.nn.functional.pad(reading.mask[index], (0, longest), value=1)
        self._is_padded = not bool(self._mask.all())
        self._lengths = reading.lengths[index]
        self._logits = reading.logits[index]
        self._cache.batch_select_indices(index)
        make_room(self._cache)

    def advance(self) -> None:
        """Write one token of each row, and compute what the next one is drawn from."""
        tokens = self._draw()
        kept = self._dropped(tokens)
        if not self.is_writing:
            return
        self._columns += 1
        output = self._policy.model(
            input_ids=kept[:, None],
            attention_mask=self._mask[:, : self._columns] if self._is_padded else None,
            position_ids=(self._lengths + self._step)[:, None],
            past_key_values=self._cache,
            use_cache=True,
        )
        self._logits = output.logits[:, -1]
        self._step += 1

    def _draw(self) -> torch.Tensor:
        """The next token of each row of the batch."""
        import torch

        tokens, logprobs = draw(
            self._logits,
            temperatures=self._temperatures[self._rows],
            top_ps=None if self._top_ps is None else self._top_ps[self._rows],
            draws=self._draws[self._rows, self._step],
        )
        self._tokens[self._rows, self._step] = tokens
        self._logprobs[self._rows, self._step] = logprobs
        ends = torch.isin(tokens, self._ends) & ~self._is_done
        ended = self._rows[ends]
        self._written[ended] = self._step + 1
        self._is_ended[ended] = True
        self._is_done |= ends | (self._limits[self._rows] <= self._step + 1)
        return tokens

    def _dropped(self, tokens: torch.Tensor) -> torch.Tensor:
        """Take finished rows out of the batch, once they are worth a copy of the cache."""
        going = (~self._is_done).nonzero()[:, 0]
        if len(going) > _WORTH_DROPPING * len(self._rows):
            return tokens
        self._rows = self._rows[going]
        self._is_done = self._is_done[going]
        if len(going):
            self._cache.batch_select_indices(going)
            self._mask = self._mask[going]
            self._lengths = self._lengths[going]
        return tokens[going]

    def completions(self) -> list[Completion]:
        """The answers, when all are written.

        Raises:
            PolicyError: A token has no probability.
        """
        if not bool(self._logprobs.isfinite().all()):
            raise PolicyError(
                f"{self._policy.name} gives no probabilities: what it says of the next token is no "
                "number. Its weights have diverged; begin anew with a lower learning rate, or go "
                "on from an earlier checkpoint"
            )
        written, is_ended = self._written.tolist(), self._is_ended.tolist()
        tokens, logprobs = self._tokens.tolist(), self._logprobs.tolist()
        return [
            Completion(ids=tuple(ids[:size]), logprobs=tuple(logs[:size]), is_ended=ended)
            for ids, logs, size, ended in zip(tokens, logprobs, written, is_ended, strict=True)
        ]


def _stream(prompt: Prompt, longest: int) -> torch.Tensor:
    """The row's random numbers in [0, 1); the first n are the same however many are taken."""
    import torch

    generator = torch.Generator().manual_seed(prompt.seed)
    draws = torch.rand(prompt.max_tokens, generator=generator, dtype=torch.float64)
    return torch.nn.functional.pad(draws, (0, longest - prompt.max_tokens))
