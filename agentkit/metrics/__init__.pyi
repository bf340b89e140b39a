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
from .argument_types import Language as Language
from .calls import (
    CanonicalCall as CanonicalCall,
    calls_equal as calls_equal,
    canonical_calls as canonical_calls,
)
from .intervals import (
    Interval as Interval,
    Observation as Observation,
    bootstrap_interval as bootstrap_interval,
    wilson_interval as wilson_interval,
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
