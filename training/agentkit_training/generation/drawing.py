"""Drawing tokens: the inverse of the cumulated probabilities at a number of the row's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

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
