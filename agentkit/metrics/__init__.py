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
    from agentkit.metrics.data_flow import (
        DataFlowMatch,
        ExecutedCall,
        FlowCall,
        compare_data_flow,
        compare_executed_flow,
    )
    from agentkit.metrics.fields import FieldKind, field_kind, texts_agree
    from agentkit.metrics.intervals import (
        Interval,
        Observation,
        bootstrap_interval,
        wilson_interval,
    )
    from agentkit.metrics.label_f1 import macro_f1
    from agentkit.metrics.overlap import (
        CallPair,
        Overlap,
        call_overlap,
        call_similarity,
        difficulty,
    )
    from agentkit.metrics.paired import (
        PairedComparison,
        PairedOutcome,
        compare_paired,
        mcnemar_mid_p,
    )
    from agentkit.metrics.passing import pass_at_k, pass_hat_k
    from agentkit.metrics.rewards import reward_r1, reward_r2, reward_r3
    from agentkit.metrics.tooldna import ToolDnaMetrics, tooldna_metrics

__all__ = [
    "AllowedCall",
    "AllowedValuesResult",
    "CallLike",
    "CallPair",
    "CanonicalCall",
    "ComparableCall",
    "DataFlowMatch",
    "ExecutedCall",
    "FieldKind",
    "FlowCall",
    "GoldCalls",
    "GoldProblem",
    "Interval",
    "Mismatch",
    "MismatchKind",
    "Observation",
    "Overlap",
    "PairedComparison",
    "PairedOutcome",
    "ToolDnaMetrics",
    "UnmatchedCall",
    "bootstrap_interval",
    "call_overlap",
    "call_similarity",
    "calls_equal",
    "canonical_calls",
    "comparable_calls",
    "compare_data_flow",
    "compare_executed_flow",
    "compare_paired",
    "difficulty",
    "field_kind",
    "gold_problems",
    "macro_f1",
    "match_allowed_values",
    "mcnemar_mid_p",
    "optimal_assignment",
    "pass_at_k",
    "pass_hat_k",
    "reward_r1",
    "reward_r2",
    "reward_r3",
    "texts_agree",
    "tooldna_metrics",
    "wilson_interval",
]

_MODULES = {
    "AllowedCall": "agentkit.metrics.allowed_values",
    "AllowedValuesResult": "agentkit.metrics.allowed_values",
    "CallLike": "agentkit.metrics.comparable",
    "CallPair": "agentkit.metrics.overlap",
    "CanonicalCall": "agentkit.metrics.calls",
    "ComparableCall": "agentkit.metrics.comparable",
    "DataFlowMatch": "agentkit.metrics.data_flow",
    "ExecutedCall": "agentkit.metrics.data_flow",
    "FieldKind": "agentkit.metrics.fields",
    "FlowCall": "agentkit.metrics.data_flow",
    "GoldCalls": "agentkit.metrics.allowed_values",
    "GoldProblem": "agentkit.metrics.allowed_values",
    "Interval": "agentkit.metrics.intervals",
    "Mismatch": "agentkit.metrics.allowed_values",
    "MismatchKind": "agentkit.metrics.allowed_values",
    "Observation": "agentkit.metrics.intervals",
    "Overlap": "agentkit.metrics.overlap",
    "PairedComparison": "agentkit.metrics.paired",
    "PairedOutcome": "agentkit.metrics.paired",
    "ToolDnaMetrics": "agentkit.metrics.tooldna",
    "UnmatchedCall": "agentkit.metrics.allowed_values",
    "bootstrap_interval": "agentkit.metrics.intervals",
    "call_overlap": "agentkit.metrics.overlap",
    "call_similarity": "agentkit.metrics.overlap",
    "calls_equal": "agentkit.metrics.calls",
    "canonical_calls": "agentkit.metrics.calls",
    "comparable_calls": "agentkit.metrics.comparable",
    "compare_data_flow": "agentkit.metrics.data_flow",
    "compare_executed_flow": "agentkit.metrics.data_flow",
    "compare_paired": "agentkit.metrics.paired",
    "difficulty": "agentkit.metrics.overlap",
    "field_kind": "agentkit.metrics.fields",
    "gold_problems": "agentkit.metrics.allowed_values",
    "macro_f1": "agentkit.metrics.label_f1",
    "match_allowed_values": "agentkit.metrics.allowed_values",
    "mcnemar_mid_p": "agentkit.metrics.paired",
    "optimal_assignment": "agentkit.metrics.assignment",
    "pass_at_k": "agentkit.metrics.passing",
    "pass_hat_k": "agentkit.metrics.passing",
    "reward_r1": "agentkit.metrics.rewards",
    "reward_r2": "agentkit.metrics.rewards",
    "reward_r3": "agentkit.metrics.rewards",
    "texts_agree": "agentkit.metrics.fields",
    "tooldna_metrics": "agentkit.metrics.tooldna",
    "wilson_interval": "agentkit.metrics.intervals",
}

__getattr__ = lazy_door(__name__, _MODULES)
