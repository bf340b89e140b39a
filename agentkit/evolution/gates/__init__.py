"""What the numbers must say before a suggested change goes one step further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.gates.betting import log_money_path
    from agentkit.evolution.gates.bystanders import bystander_gate
    from agentkit.evolution.gates.canary import canary_gate
    from agentkit.evolution.gates.cost import cost_gate
    from agentkit.evolution.gates.decision import (
        Arm,
        ArmScore,
        Decision,
        GateReport,
        GateRules,
        PairedScore,
        PairedSelection,
    )
    from agentkit.evolution.gates.e_process import log_e_path, log_e_value
    from agentkit.evolution.gates.elond import Elond
    from agentkit.evolution.gates.evidence import Evidence
    from agentkit.evolution.gates.from_episodes import (
        Collected,
        canary_scores,
        shadow_pairs,
        shadow_seconds,
        shadow_selections,
        shadow_tokens,
    )
    from agentkit.evolution.gates.offline import offline_gate, one_sided_mid_p
    from agentkit.evolution.gates.paraphrases import paraphrase_gate
    from agentkit.evolution.gates.planning import chance_to_pass, wins_needed
    from agentkit.evolution.gates.retrieval_bystanders import (
        own_requests,
        retrieval_gate,
        retrieved_selections,
    )
    from agentkit.evolution.gates.shadow import shadow_gate

__all__ = [
    "Arm",
    "ArmScore",
    "Collected",
    "Decision",
    "Elond",
    "Evidence",
    "GateReport",
    "GateRules",
    "PairedScore",
    "PairedSelection",
    "bystander_gate",
    "canary_gate",
    "canary_scores",
    "chance_to_pass",
    "cost_gate",
    "log_e_path",
    "log_e_value",
    "log_money_path",
    "offline_gate",
    "one_sided_mid_p",
    "own_requests",
    "paraphrase_gate",
    "retrieval_gate",
    "retrieved_selections",
    "shadow_gate",
    "shadow_pairs",
    "shadow_seconds",
    "shadow_selections",
    "shadow_tokens",
    "wins_needed",
]

_MODULES = {
    "Arm": "agentkit.evolution.gates.decision",
    "ArmScore": "agentkit.evolution.gates.decision",
    "Collected": "agentkit.evolution.gates.from_episodes",
    "Decision": "agentkit.evolution.gates.decision",
    "Elond": "agentkit.evolution.gates.elond",
    "Evidence": "agentkit.evolution.gates.evidence",
    "GateReport": "agentkit.evolution.gates.decision",
    "GateRules": "agentkit.evolution.gates.decision",
    "PairedScore": "agentkit.evolution.gates.decision",
    "PairedSelection": "agentkit.evolution.gates.decision",
    "bystander_gate": "agentkit.evolution.gates.bystanders",
    "canary_gate": "agentkit.evolution.gates.canary",
    "canary_scores": "agentkit.evolution.gates.from_episodes",
    "chance_to_pass": "agentkit.evolution.gates.planning",
    "cost_gate": "agentkit.evolution.gates.cost",
    "log_e_path": "agentkit.evolution.gates.e_process",
    "log_e_value": "agentkit.evolution.gates.e_process",
    "log_money_path": "agentkit.evolution.gates.betting",
    "offline_gate": "agentkit.evolution.gates.offline",
    "one_sided_mid_p": "agentkit.evolution.gates.offline",
    "own_requests": "agentkit.evolution.gates.retrieval_bystanders",
    "paraphrase_gate": "agentkit.evolution.gates.paraphrases",
    "retrieval_gate": "agentkit.evolution.gates.retrieval_bystanders",
    "retrieved_selections": "agentkit.evolution.gates.retrieval_bystanders",
    "shadow_gate": "agentkit.evolution.gates.shadow",
    "shadow_pairs": "agentkit.evolution.gates.from_episodes",
    "shadow_seconds": "agentkit.evolution.gates.from_episodes",
    "shadow_selections": "agentkit.evolution.gates.from_episodes",
    "shadow_tokens": "agentkit.evolution.gates.from_episodes",
    "wins_needed": "agentkit.evolution.gates.planning",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
