"""6. Why it failed: labels for turns, and failures in words that a model can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.diagnosis.labelling import diagnose, diagnose_conversation
    from agentkit.diagnosis.labels import PRECEDENCE, dominant, label_distribution
    from agentkit.diagnosis.profile import FailureProfile, FailureRate, PositionLabels
    from agentkit.diagnosis.wording import describe_failure

__all__ = [
    "PRECEDENCE",
    "FailureProfile",
    "FailureRate",
    "PositionLabels",
    "describe_failure",
    "diagnose",
    "diagnose_conversation",
    "dominant",
    "label_distribution",
]

_MODULES = {
    "FailureProfile": "agentkit.diagnosis.profile",
    "FailureRate": "agentkit.diagnosis.profile",
    "PRECEDENCE": "agentkit.diagnosis.labels",
    "PositionLabels": "agentkit.diagnosis.profile",
    "describe_failure": "agentkit.diagnosis.wording",
    "diagnose": "agentkit.diagnosis.labelling",
    "diagnose_conversation": "agentkit.diagnosis.labelling",
    "dominant": "agentkit.diagnosis.labels",
    "label_distribution": "agentkit.diagnosis.labels",
}

__getattr__ = lazy_door(__name__, _MODULES)
