"""Pure functions that say how good calls are; runtime, evaluation and training share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.metrics.allowed_values import (
        AllowedCall,
        AllowedValuesResult,
        GoldCalls,
        GoldProblem,
        Mismatch,
        MismatchKind,
        UnmatchedCall,
        gold_problems,
        match_allowed_values,
    )
    from agentkit.metrics.assignment import optimal_assignment
    from agentkit.metrics.calls import CanonicalCall, calls_equal, canonical_calls
    from agentkit.metrics.comparable import CallLike, ComparableCall, comparable_calls
    from agentkit.metrics.fields import FieldKind, field_kind, texts_agree
    from agentkit.metrics.overlap import (
        CallPair,
        Overlap,
        call_overlap,
        call_similarity,
        difficulty,
    )
    from agentkit.metrics.rewards import reward_r1, reward_r2, reward_r3
    from agentkit.metrics.tooldna import ToolDnaMetrics, tooldna_metrics

__all__ = [
    "AllowedCall",
    "AllowedValuesResult",
    "CallLike",
    "CallPair",
    "CanonicalCall",
    "ComparableCall",
    "FieldKind",
    "GoldCalls",
    "GoldProblem",
    "Mismatch",
    "MismatchKind",
    "Overlap",
    "ToolDnaMetrics",
    "UnmatchedCall",
    "call_overlap",
    "call_similarity",
    "calls_equal",
    "canonical_calls",
    "comparable_calls",
    "difficulty",
    "field_kind",
    "gold_problems",
    "match_allowed_values",
    "optimal_assignment",
    "reward_r1",
    "reward_r2",
    "reward_r3",
    "texts_agree",
    "tooldna_metrics",
]

_MODULES = {
    "AllowedCall": "agentkit.metrics.allowed_values",
    "AllowedValuesResult": "agentkit.metrics.allowed_values",
    "CallLike": "agentkit.metrics.comparable",
    "CallPair": "agentkit.metrics.overlap",
    "CanonicalCall": "agentkit.metrics.calls",
    "ComparableCall": "agentkit.metrics.comparable",
    "FieldKind": "agentkit.metrics.fields",
    "GoldCalls": "agentkit.metrics.allowed_values",
    "GoldProblem": "agentkit.metrics.allowed_values",
    "Mismatch": "agentkit.metrics.allowed_values",
    "MismatchKind": "agentkit.metrics.allowed_values",
    "Overlap": "agentkit.metrics.overlap",
    "ToolDnaMetrics": "agentkit.metrics.tooldna",
    "UnmatchedCall": "agentkit.metrics.allowed_values",
    "call_overlap": "agentkit.metrics.overlap",
    "call_similarity": "agentkit.metrics.overlap",
    "calls_equal": "agentkit.metrics.calls",
    "canonical_calls": "agentkit.metrics.calls",
    "comparable_calls": "agentkit.metrics.comparable",
    "difficulty": "agentkit.metrics.overlap",
    "field_kind": "agentkit.metrics.fields",
    "gold_problems": "agentkit.metrics.allowed_values",
    "match_allowed_values": "agentkit.metrics.allowed_values",
    "optimal_assignment": "agentkit.metrics.assignment",
    "reward_r1": "agentkit.metrics.rewards",
    "reward_r2": "agentkit.metrics.rewards",
    "reward_r3": "agentkit.metrics.rewards",
    "texts_agree": "agentkit.metrics.fields",
    "tooldna_metrics": "agentkit.metrics.tooldna",
}

__getattr__ = lazy_door(__name__, _MODULES)
