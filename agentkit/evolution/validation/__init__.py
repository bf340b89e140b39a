"""What is asked of a suggested change before anybody runs it: ``validation.validate.validate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.validation.checks import ALL_CHECKS
    from agentkit.evolution.validation.lexical import LEXICAL_CHECKS
    from agentkit.evolution.validation.policy import ValidationPolicy
    from agentkit.evolution.validation.report import (
        Check,
        FailedCheck,
        ProposedChange,
        ValidationReport,
    )
    from agentkit.evolution.validation.semantic import SEMANTIC_CHECKS
    from agentkit.evolution.validation.semantic_judge import ModelSemanticJudge
    from agentkit.evolution.validation.structural import STRUCTURAL_CHECKS

__all__ = [
    "ALL_CHECKS",
    "LEXICAL_CHECKS",
    "SEMANTIC_CHECKS",
    "STRUCTURAL_CHECKS",
    "Check",
    "FailedCheck",
    "ModelSemanticJudge",
    "ProposedChange",
    "ValidationPolicy",
    "ValidationReport",
]

_MODULES = {
    "ALL_CHECKS": "agentkit.evolution.validation.checks",
    "LEXICAL_CHECKS": "agentkit.evolution.validation.lexical",
    "SEMANTIC_CHECKS": "agentkit.evolution.validation.semantic",
    "STRUCTURAL_CHECKS": "agentkit.evolution.validation.structural",
    "Check": "agentkit.evolution.validation.report",
    "FailedCheck": "agentkit.evolution.validation.report",
    "ModelSemanticJudge": "agentkit.evolution.validation.semantic_judge",
    "ProposedChange": "agentkit.evolution.validation.report",
    "ValidationPolicy": "agentkit.evolution.validation.policy",
    "ValidationReport": "agentkit.evolution.validation.report",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
