"""How often a tool or a parameter fails, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentkit.episodes import FailureLabel
from agentkit.metrics.intervals import Interval, wilson_interval


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
        return self._interval.low

    @property
    def highest(self) -> float:
        """The upper end of that interval."""
        return self._interval.high

    @property
    def _interval(self) -> Interval:
        failed = max(0.0, min(self.failures, self.observed))  # sums of weights round apart
        return wilson_interval(failed, max(0.0, self.observed))


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
