from .allowed_values import (
    AllowedCall as AllowedCall,
)
from .allowed_values import (
    AllowedValuesResult as AllowedValuesResult,
)
from .allowed_values import (
    GoldCalls as GoldCalls,
)
from .allowed_values import (
    GoldProblem as GoldProblem,
)
from .allowed_values import (
    Mismatch as Mismatch,
)
from .allowed_values import (
    MismatchKind as MismatchKind,
)
from .allowed_values import (
    UnmatchedCall as UnmatchedCall,
)
from .allowed_values import (
    gold_problems as gold_problems,
)
from .allowed_values import (
    match_allowed_values as match_allowed_values,
)
from .assignment import optimal_assignment as optimal_assignment
from .calls import (
    CanonicalCall as CanonicalCall,
)
from .calls import (
    calls_equal as calls_equal,
)
from .calls import (
    canonical_calls as canonical_calls,
)
from .comparable import (
    CallLike as CallLike,
)
from .comparable import (
    ComparableCall as ComparableCall,
)
from .comparable import (
    comparable_calls as comparable_calls,
)
from .data_flow import (
    DataFlowMatch as DataFlowMatch,
)
from .data_flow import (
    ExecutedCall as ExecutedCall,
)
from .data_flow import (
    FlowCall as FlowCall,
)
from .data_flow import (
    compare_data_flow as compare_data_flow,
)
from .data_flow import (
    compare_executed_flow as compare_executed_flow,
)
from .fields import (
    FieldKind as FieldKind,
)
from .fields import (
    field_kind as field_kind,
)
from .fields import (
    texts_agree as texts_agree,
)
from .intervals import (
    Interval as Interval,
)
from .intervals import (
    Observation as Observation,
)
from .intervals import (
    bootstrap_interval as bootstrap_interval,
)
from .intervals import (
    wilson_interval as wilson_interval,
)
from .label_f1 import macro_f1 as macro_f1
from .overlap import (
    CallPair as CallPair,
)
from .overlap import (
    Overlap as Overlap,
)
from .overlap import (
    call_overlap as call_overlap,
)
from .overlap import (
    call_similarity as call_similarity,
)
from .overlap import (
    difficulty as difficulty,
)
from .paired import (
    PairedComparison as PairedComparison,
)
from .paired import (
    PairedOutcome as PairedOutcome,
)
from .paired import (
    compare_paired as compare_paired,
)
from .paired import (
    mcnemar_mid_p as mcnemar_mid_p,
)
from .passing import (
    pass_at_k as pass_at_k,
)
from .passing import (
    pass_hat_k as pass_hat_k,
)
from .rewards import (
    reward_r1 as reward_r1,
)
from .rewards import (
    reward_r2 as reward_r2,
)
from .rewards import (
    reward_r3 as reward_r3,
)
from .tooldna import (
    ToolDnaMetrics as ToolDnaMetrics,
)
from .tooldna import (
    tooldna_metrics as tooldna_metrics,
)
