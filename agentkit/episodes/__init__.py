"""5. What happened: the record of a run."""

from agentkit.episodes.episode import (
    Episode,
    GoalTrace,
    RefineMode,
    RefineTrace,
    RetrievalTrace,
    StageReport,
    StopReason,
    Turn,
)

__all__ = [
    "Episode",
    "GoalTrace",
    "RefineMode",
    "RefineTrace",
    "RetrievalTrace",
    "StageReport",
    "StopReason",
    "Turn",
]
