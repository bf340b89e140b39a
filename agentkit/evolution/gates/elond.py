r"""e-LOND: how many of many promoted candidates are useless, kept in bounds.

A gate at level .05 lets one useless candidate in twenty pass; of 160 useless ones, eight. e-LOND
(Xu and Ramdas 2024, "Online multiple testing with e-values", AISTATS, PMLR 238) gives the t-th
experiment the level

    alpha_t = alpha gamma_t (1 + promotions so far),    \sum_t gamma_t <= 1,

and promotes when its e-value reaches 1 / alpha_t. The expected share of useless ones among all
promoted (the false discovery rate) is then at most alpha, however the experiments depend on each
other. *Proof.* Let R be all promotions and R_t those before experiment t. If t is promoted, then
|R| >= R_t + 1, so a useless t adds at most E[1{E_t >= 1 / alpha_t} / (R_t + 1)] <= E[E_t alpha_t /
(R_t + 1)] = alpha gamma_t E[E_t] <= alpha gamma_t. The sum over t is at most alpha.

We differ in one thing: experiments overlap in time. An experiment gets its number and its level
when it *opens*, and keeps them. ``promotions so far`` counts what was promoted by then, which is no
more than what was when it is decided, so the proof holds word for word; and a fixed level makes the
first time at which the e-process reaches it a stopping time, so that E[E_t] <= 1 holds there.

The paper leaves gamma open. Ours falls as t^-1.3: slowly, so that late experiments keep a level
that useful earlier ones can still raise, and summable, so that there is no last experiment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import StoreFormatError, UsageError
from agentkit.messages import JsonObject

DECAY = 1.3
"""The power with which the levels fall, before promotions raise them."""

_ZETA = 3.93194921181
"""The sum of t^-1.3 over all t, Riemann's zeta function, rounded up."""


def gamma(number: int) -> float:
    """The part of alpha that belongs to an experiment; all parts together are at most 1.

    Args:
        number: The experiment's place in the order of opening, from 1.

    Raises:
        UsageError: The number is less than 1.
    """
    if number < 1:
        raise UsageError(f"experiments are numbered from 1, got {number}")
    share: float = number**-DECAY / _ZETA
    return share


@dataclass(frozen=True, kw_only=True, slots=True)
class Elond:
    """The state of e-LOND, folded from the events of the library.

    Attributes:
        opened: Experiments that were opened.
        promoted: Those whose e-value reached their level. One that is rolled back later still
            counts: it was a discovery, and taking it away would change levels already given.

    Example:
        >>> state = Elond()
        >>> level = state.level(0.05)
        >>> state = state.open().promote()
        >>> round(level, 4), round(state.level(0.05), 4)
        (0.0127, 0.0103)
    """

    opened: int = 0
    promoted: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.promoted <= self.opened:
            raise UsageError(f"{self.promoted} of {self.opened} experiments can not be promoted")

    def level(self, alpha: float) -> float:
        """The level of the experiment that is opened next; it keeps it to its end.

        Args:
            alpha: The false discovery rate that is tolerated.

        Raises:
            UsageError: It is not between 0 and 1.
        """
        if not 0 < alpha < 1:
            raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
        return min(1.0, alpha * gamma(self.opened + 1) * (self.promoted + 1))

    def open(self) -> Elond:
        """The state after an experiment was opened."""
        return replace(self, opened=self.opened + 1)

    def promote(self) -> Elond:
        """The state after an open experiment reached its level."""
        return replace(self, promoted=self.promoted + 1)

    def to_json(self) -> dict[str, Any]:
        """The state as a JSON object."""
        return {"opened": self.opened, "promoted": self.promoted}

    @classmethod
    def from_json(cls, record: JsonObject) -> Elond:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no such state.
        """
        opened, promoted = record.get("opened"), record.get("promoted")
        if type(opened) is not int or type(promoted) is not int or not 0 <= promoted <= opened:
            raise StoreFormatError(f"not a state of e-LOND: {str(record)[:200]}")
        return cls(opened=opened, promoted=promoted)
