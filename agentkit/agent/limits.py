"""Bounds on one run. Reaching one ends the run with a stop reason; it is not an exception."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.episodes import StopReason
from agentkit.errors import UsageError
from agentkit.messages import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one run may spend; None means no bound.

    Attributes:
        max_steps: Model turns. Refinement rounds belong to their turn.
        max_calls: Tool calls started. Further ones fail with a reason that the model reads.
        max_tokens: Tokens read and written, checked after each turn.
        max_cost_usd: Price, checked after each turn; only adapters that know prices report it.
        max_result_chars: Longest text of one result that the model reads; the episode keeps the
            whole value.
    """

    max_steps: int = 10
    max_calls: int = 50
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_result_chars: int | None = 50_000

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise UsageError(f"max_steps is {self.max_steps}; a run needs at least one step")
        for name in ("max_calls", "max_tokens", "max_cost_usd", "max_result_chars"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise UsageError(f"{name} is {value}; use 0 or more, or None for no bound")

    def reached(self, *, steps: int, usage: Usage) -> StopReason | None:
        """The limit that stops another turn, or None."""
        if self.max_tokens is not None and usage.total_tokens >= self.max_tokens:
            return "token_limit"
        if self.max_cost_usd is not None and (usage.cost_usd or 0.0) >= self.max_cost_usd:
            return "cost_limit"
        return "step_limit" if steps >= self.max_steps else None
