"""Pure functions that say how good calls are; runtime, evaluation and training share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
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

_MODULES = {
    "AllowedCall": "agentkit.metrics.allowed_values",
    "AllowedValuesResult": "agentkit.metrics.allowed_values",
    "CanonicalCall": "agentkit.metrics.calls",
    "Mismatch": "agentkit.metrics.allowed_values",
    "MismatchKind": "agentkit.metrics.allowed_values",
    "UnmatchedCall": "agentkit.metrics.allowed_values",
    "calls_equal": "agentkit.metrics.calls",
    "canonical_calls": "agentkit.metrics.calls",
    "match_allowed_values": "agentkit.metrics.allowed_values",
}

__getattr__ = lazy_door(__name__, _MODULES)
