"""How often a tool or a parameter fails, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentkit.episodes import FailureLabel

_Z = 1.959963984540054  # 95%, two-sided


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRate:
    """How often calls of a tool fail, or fail at one of its parameters.

    Attributes:
        tool: The tool.
        parameter: The parameter; empty for the tool as a whole.
        failures: The weight of failures; a fresh one weighs 1.
        observed: The weight of all calls of the tool that were made or missing, good ones included.
        labels: The weight of failures by label, the heaviest first.
        examples: Ids of episodes with such a failure, the newest first.
    """

    tool: str
    parameter: str = ""
    failures: float
    observed: float
    labels: Mapping[FailureLabel, float] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """The share of failures, from 0 to 1."""
        return self.failures / self.observed if self.observed > 0 else 0.0

    @property
    def lowest(self) -> float:
        """The lower end of Wilson's 95% interval of the rate: what the failures bear out.

        Weights count as a number of calls, which is less than their true information (Kish's
        effective size is never smaller than a sum of weights up to 1), so it errs on the low side.
        """
        return wilson_bounds(self.failures, self.observed)[0]

    @property
    def highest(self) -> float:
        """The upper end of that interval."""
        return wilson_bounds(self.failures, self.observed)[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class PositionLabels:
    """What the turns at one position of their episodes are labelled with.

    Attributes:
        position: Index of the turn; the last one stands for all later ones too.
        observed: The weight of all turns there.
        labels: The share of each label, the largest first.
    """

    position: int
    observed: float
    labels: Mapping[FailureLabel, float]


def wilson_bounds(hits: float, total: float) -> tuple[float, float]:
    """Wilson's 95% score interval of a share, for counts that may be fractions.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927).

    Args:
        hits: How many of them, at most ``total``.
        total: How many in all; 0 gives the whole range.

    Example:
        >>> [round(wilson_bounds(*counts)[0], 2) for counts in ((1, 1), (3, 4), (30, 40))]
        [0.21, 0.3, 0.6]
    """
    if total <= 0:
        return 0.0, 1.0
    share = min(1.0, max(0.0, hits / total))
    square = _Z * _Z / total
    centre = (share + square / 2) / (1 + square)
    reach = math.sqrt(square * share * (1 - share) + square * square / 4) / (1 + square)
    return max(0.0, centre - reach), min(1.0, centre + reach)
