"""Pure functions that say how good calls are; runtime, evaluation and training share them."""

from agentkit.metrics.allowed_values import (
    AllowedCall,
    AllowedValuesResult,
    Mismatch,
    MismatchKind,
    UnmatchedCall,
    match_allowed_values,
)
from agentkit.metrics.calls import CanonicalCall, calls_equal, canonical_calls

__all__ = [
    "AllowedCall",
    "AllowedValuesResult",
    "CanonicalCall",
    "Mismatch",
    "MismatchKind",
    "UnmatchedCall",
    "calls_equal",
    "canonical_calls",
    "match_allowed_values",
]
