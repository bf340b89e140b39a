"""The life cycle of proposals: states, who may bring them on, and what is written when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.lifecycle.assessing import EpisodeGates
    from agentkit.evolution.lifecycle.cycle import Advance
    from agentkit.evolution.lifecycle.differences import Difference
    from agentkit.evolution.lifecycle.judging import ChangeJudge, Judgement
    from agentkit.evolution.lifecycle.ledger import Ledger
    from agentkit.evolution.lifecycle.policy import LifecyclePolicy
    from agentkit.evolution.lifecycle.record import ProposalRecord, ProposerRecord, TestPlace
    from agentkit.evolution.lifecycle.revalidating import Revalidation
    from agentkit.evolution.lifecycle.standing import Standing

__all__ = [
    "Advance",
    "ChangeJudge",
    "Difference",
    "EpisodeGates",
    "Judgement",
    "Ledger",
    "LifecyclePolicy",
    "ProposalRecord",
    "ProposerRecord",
    "Revalidation",
    "Standing",
    "TestPlace",
]

_MODULES = {
    "Advance": "agentkit.evolution.lifecycle.cycle",
    "ChangeJudge": "agentkit.evolution.lifecycle.judging",
    "Difference": "agentkit.evolution.lifecycle.differences",
    "EpisodeGates": "agentkit.evolution.lifecycle.assessing",
    "Judgement": "agentkit.evolution.lifecycle.judging",
    "Ledger": "agentkit.evolution.lifecycle.ledger",
    "LifecyclePolicy": "agentkit.evolution.lifecycle.policy",
    "ProposalRecord": "agentkit.evolution.lifecycle.record",
    "ProposerRecord": "agentkit.evolution.lifecycle.record",
    "Revalidation": "agentkit.evolution.lifecycle.revalidating",
    "Standing": "agentkit.evolution.lifecycle.standing",
    "TestPlace": "agentkit.evolution.lifecycle.record",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
