"""7. Better metadata and composites: what enters the library, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.composite_proposer import CompositeCandidate, propose_composites
    from agentkit.evolution.judge import ModelJudge
    from agentkit.evolution.learning.report import LearnReport
    from agentkit.evolution.learning.rules import LearningRules
    from agentkit.evolution.learning.unmatched import UnmatchedWord, unmatched_words
    from agentkit.evolution.manager import ToolManager
    from agentkit.evolution.mining.candidates import MinedComposite
    from agentkit.evolution.mining.inserting import insert_mined
    from agentkit.evolution.mining.miner import MiningResult, MiningRules, mine
    from agentkit.evolution.mining.sources import trajectories_of
    from agentkit.evolution.outcome import (
        Added,
        InsertOutcome,
        Merged,
        Rejected,
        RejectionCode,
        Witness,
    )
    from agentkit.evolution.policy import InsertPolicy

__all__ = [
    "Added",
    "CompositeCandidate",
    "InsertOutcome",
    "InsertPolicy",
    "LearnReport",
    "LearningRules",
    "Merged",
    "MinedComposite",
    "MiningResult",
    "MiningRules",
    "ModelJudge",
    "Rejected",
    "RejectionCode",
    "ToolManager",
    "UnmatchedWord",
    "Witness",
    "insert_mined",
    "mine",
    "propose_composites",
    "trajectories_of",
    "unmatched_words",
]

_MODULES = {
    "Added": "agentkit.evolution.outcome",
    "CompositeCandidate": "agentkit.evolution.composite_proposer",
    "InsertOutcome": "agentkit.evolution.outcome",
    "InsertPolicy": "agentkit.evolution.policy",
    "LearnReport": "agentkit.evolution.learning.report",
    "LearningRules": "agentkit.evolution.learning.rules",
    "Merged": "agentkit.evolution.outcome",
    "MinedComposite": "agentkit.evolution.mining.candidates",
    "MiningResult": "agentkit.evolution.mining.miner",
    "MiningRules": "agentkit.evolution.mining.miner",
    "ModelJudge": "agentkit.evolution.judge",
    "Rejected": "agentkit.evolution.outcome",
    "RejectionCode": "agentkit.evolution.outcome",
    "ToolManager": "agentkit.evolution.manager",
    "UnmatchedWord": "agentkit.evolution.learning.unmatched",
    "Witness": "agentkit.evolution.outcome",
    "insert_mined": "agentkit.evolution.mining.inserting",
    "mine": "agentkit.evolution.mining.miner",
    "propose_composites": "agentkit.evolution.composite_proposer",
    "trajectories_of": "agentkit.evolution.mining.sources",
    "unmatched_words": "agentkit.evolution.learning.unmatched",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
