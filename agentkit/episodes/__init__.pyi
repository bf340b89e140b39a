from .episode import (
    CutReason as CutReason,
    Episode as Episode,
    GoalTrace as GoalTrace,
    GuardrailRecord as GuardrailRecord,
    HistoryTrace as HistoryTrace,
    ProgramCall as ProgramCall,
    RefineMode as RefineMode,
    RefineTrace as RefineTrace,
    RetrievalTrace as RetrievalTrace,
    StageReport as StageReport,
    StopReason as StopReason,
    Turn as Turn,
    Verifier as Verifier,
)
from .redaction import Redaction as Redaction, change_texts as change_texts
from .verdict import (
    Attribution as Attribution,
    Diagnosis as Diagnosis,
    Evidence as Evidence,
    EvidenceKind as EvidenceKind,
    FailureLabel as FailureLabel,
    Fault as Fault,
    Recovery as Recovery,
    RecoveryOutcome as RecoveryOutcome,
    TurnDiagnosis as TurnDiagnosis,
    Verdict as Verdict,
)
