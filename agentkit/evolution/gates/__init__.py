"""What the numbers must say before a suggested change goes one step further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.gates.decision import (
        Arm,
        ArmScore,
        Decision,
        GateReport,
        GateRules,
        PairedScore,
        PairedSelection,
    )

__all__ = [
    "Arm",
    "ArmScore",
    "Decision",
    "GateReport",
    "GateRules",
    "PairedScore",
    "PairedSelection",
]

_MODULES = {
    "Arm": "agentkit.evolution.gates.decision",
    "ArmScore": "agentkit.evolution.gates.decision",
    "Decision": "agentkit.evolution.gates.decision",
    "GateReport": "agentkit.evolution.gates.decision",
    "GateRules": "agentkit.evolution.gates.decision",
    "PairedScore": "agentkit.evolution.gates.decision",
    "PairedSelection": "agentkit.evolution.gates.decision",
}

__getattr__ = lazy_door(__name__, _MODULES)
