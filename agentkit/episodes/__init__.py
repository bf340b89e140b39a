"""5. What happened: the record of a run, its verdict and its diagnosis."""

from agentkit.episodes.diagnosis import (
    Attribution,
    Diagnosis,
    FailureLabel,
    Recovery,
    RecoveryOutcome,
    TurnDiagnosis,
)
from agentkit.episodes.episode import (
    CutReason,
    Episode,
    GoalTrace,
    RefineMode,
    RefineTrace,
    RetrievalTrace,
    StageReport,
    StopReason,
    Turn,
    Verifier,
)
from agentkit.episodes.verdict import Evidence, EvidenceKind, Fault, Verdict

__all__ = [
    "Attribution",
    "CutReason",
    "Diagnosis",
    "Episode",
    "Evidence",
    "EvidenceKind",
    "FailureLabel",
    "Fault",
    "GoalTrace",
    "Recovery",
    "RecoveryOutcome",
    "RefineMode",
    "RefineTrace",
    "RetrievalTrace",
    "StageReport",
    "StopReason",
    "Turn",
    "TurnDiagnosis",
    "Verdict",
    "Verifier",
]
