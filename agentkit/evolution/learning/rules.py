"""What learning from use keeps, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningRules:
    """What becomes a worked example. The caps bound what one tool's definition may grow to.

    Attributes:
        most_examples: Most examples with a query that a tool has; beyond, nothing is learned.
        most_results: Most of a tool's worked calls with a result that learning adds to. Each of
            them is tried again for every composite that is made of the tool.
        longest_query: Longest query that is kept, in characters; a longer one teaches nothing.
        longest_argument: Longest argument that is kept, in characters of JSON.
        longest_result: Longest result that is kept, in characters of JSON. It is never clipped: a
            longer one is left out, and the example says so (``Example.is_whole``).
        keep_private: Keep what looks like an address or a key, see ``private_part``.
        again: Also learn from episodes that a tool has learned from before. Without it a lesson
            that was rolled back stays forgotten.
    """

    most_examples: int = 60
    most_results: int = 16
    longest_query: int = 1_000
    longest_argument: int = 500
    longest_result: int = 1_000
    keep_private: bool = False
    again: bool = False

    def __post_init__(self) -> None:
        for name in ("most_examples", "longest_query"):
            if getattr(self, name) < 1:
                raise UsageError(f"LearningRules.{name} must be 1 or more")
        for name in ("most_results", "longest_argument", "longest_result"):
            if getattr(self, name) < 0:
                raise UsageError(f"LearningRules.{name} must be 0 or more")
