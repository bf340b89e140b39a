"""``EvidenceRules``: how much must have happened before the evidence proposer says anything."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceRules:
    """Thresholds of the evidence proposer.

    Attributes:
        least_failures: Calls that a tool must have refused for the same stated reason.
        least_episodes: Different episodes that they must come from. One episode may repeat one
            call, and one text may be hostile or broken.
        least_agreement: Of the refusals that state something of this kind about the parameter, the
            share that must state the same. A list that differs from call to call depends on the
            other arguments, and no rule can hold it.
        least_share: Of the observed calls of the tool, the share that must have failed so.
        least_lookups: Episodes in which a parameter's value must have come from another tool's
            result before that tool is asked to be called first.
        most_lessons: Lessons that one proposal may hold; those with most failures come first.
    """

    least_failures: int = 2
    least_episodes: int = 2
    least_agreement: float = 1.0
    least_share: float = 0.0
    least_lookups: int = 3
    most_lessons: int = 12

    def __post_init__(self) -> None:
        counts = (self.least_failures, self.least_episodes, self.least_lookups, self.most_lessons)
        if min(counts) < 1:
            raise UsageError(f"counts of EvidenceRules must be 1 or more, got {counts}")
        for share in (self.least_agreement, self.least_share):
            if not 0 <= share <= 1:
                raise UsageError(f"shares of EvidenceRules must be from 0 to 1, got {share}")
