from .allowed_values import (
    AllowedCall as AllowedCall,
    AllowedValuesResult as AllowedValuesResult,
    GoldCalls as GoldCalls,
    GoldProblem as GoldProblem,
    Mismatch as Mismatch,
    MismatchKind as MismatchKind,
    UnmatchedCall as UnmatchedCall,
    gold_problems as gold_problems,
    match_allowed_values as match_allowed_values,
)
from .assignment import optimal_assignment as optimal_assignment
from .calls import (
    CanonicalCall as CanonicalCall,
    calls_equal as calls_equal,
    canonical_calls as canonical_calls,
)
from .comparable import (
    CallLike as CallLike,
    ComparableCall as ComparableCall,
    comparable_calls as comparable_calls,
)
from .data_flow import (
    DataFlowMatch as DataFlowMatch,
    ExecutedCall as ExecutedCall,
    FlowCall as FlowCall,
    compare_data_flow as compare_data_flow,
    compare_executed_flow as compare_executed_flow,
)
from .fields import (
    FieldKind as FieldKind,
    field_kind as field_kind,
    texts_agree as texts_agree,
)
from .intervals import (
    Interval as Interval,
    Observation as Observation,
    bootstrap_interval as bootstrap_interval,
    wilson_interval as wilson_interval,
)
from .label_f1 import macro_f1 as macro_f1
from .overlap import (
    CallPair as CallPair,
    Overlap as Overlap,
    call_overlap as call_overlap,
    call_similarity as call_similarity,
    difficulty as difficulty,
)
from .paired import (
    PairedComparison as PairedComparison,
    PairedOutcome as PairedOutcome,
    compare_paired as compare_paired,
    mcnemar_mid_p as mcnemar_mid_p,
)
from .passing import (
    pass_at_k as pass_at_k,
    pass_hat_k as pass_hat_k,
)
from .rewards import (
    reward_r1 as reward_r1,
    reward_r2 as reward_r2,
    reward_r3 as reward_r3,
)
from .tooldna import (
    ToolDnaMetrics as ToolDnaMetrics,
    tooldna_metrics as tooldna_metrics,
)
