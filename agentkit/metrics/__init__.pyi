from .allowed_values import (
    AllowedCall as AllowedCall,
    AllowedValuesResult as AllowedValuesResult,
    GoldCalls as GoldCalls,
    GoldProblem as GoldProblem,
    Language as Language,
    Mismatch as Mismatch,
    MismatchKind as MismatchKind,
    UnmatchedCall as UnmatchedCall,
    gold_problems as gold_problems,
    match_allowed_values as match_allowed_values,
)
from .calls import (
    CanonicalCall as CanonicalCall,
    calls_equal as calls_equal,
    canonical_calls as canonical_calls,
)
from .statistics import (
    Interval as Interval,
    Observation as Observation,
    PairedComparison as PairedComparison,
    PairedOutcome as PairedOutcome,
    bootstrap_interval as bootstrap_interval,
    compare_paired as compare_paired,
    mcnemar_mid_p as mcnemar_mid_p,
    pass_at_k as pass_at_k,
    pass_hat_k as pass_hat_k,
    wilson_interval as wilson_interval,
)
