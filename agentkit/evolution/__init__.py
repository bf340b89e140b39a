"""7. Better metadata and composites: what enters the library, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.gates.decision import GateReport, GateRules
    from agentkit.evolution.insertion.judge import ModelJudge
    from agentkit.evolution.insertion.outcome import (
        Added,
        InsertOutcome,
        Merged,
        Rejected,
        RejectionCode,
        Witness,
    )
    from agentkit.evolution.insertion.policy import InsertPolicy
    from agentkit.evolution.language.report import language_report
    from agentkit.evolution.learning.report import LearnReport
    from agentkit.evolution.learning.rules import LearningRules
    from agentkit.evolution.learning.unmatched import UnmatchedWord, unmatched_words
    from agentkit.evolution.lifecycle.assessing import EpisodeGates
    from agentkit.evolution.lifecycle.ledger import Ledger
    from agentkit.evolution.lifecycle.policy import LifecyclePolicy
    from agentkit.evolution.lifecycle.record import ProposalRecord
    from agentkit.evolution.manager import ToolManager
    from agentkit.evolution.mining.candidates import MinedComposite
    from agentkit.evolution.mining.inserting import insert_mined
    from agentkit.evolution.mining.miner import MiningResult, MiningRules, mine
    from agentkit.evolution.mining.sources import trajectories_of
    from agentkit.evolution.proposals.composite_stream import CompositeStream
    from agentkit.evolution.proposals.composites.proposer import (
        CompositeCandidate,
        propose_composites,
    )
    from agentkit.evolution.proposals.evidence.lessons import EvidenceRules
    from agentkit.evolution.proposals.evidence_proposer import EvidenceProposer
    from agentkit.evolution.proposals.evolution_stream import EvolutionStream
    from agentkit.evolution.proposals.feedback_stream import FeedbackStream
    from agentkit.evolution.proposals.optimizer import GepaOptimizer
    from agentkit.evolution.proposals.proposal import Proposal, UnreadableProposal
    from agentkit.evolution.proposals.proposer import Observations, Proposer
    from agentkit.evolution.round import evolve
    from agentkit.evolution.round_report import Round
    from agentkit.evolution.serving.canary import CanaryRouter
    from agentkit.evolution.serving.shadow import ShadowLimits, ShadowRunner
    from agentkit.evolution.validation.policy import ValidationPolicy
    from agentkit.evolution.validation.report import ProposedChange, ValidationReport
    from agentkit.evolution.validation.semantic_judge import ModelSemanticJudge
    from agentkit.evolution.validation.validate import validate

__all__ = [
    "Added",
    "CanaryRouter",
    "CompositeCandidate",
    "CompositeStream",
    "EpisodeGates",
    "EvidenceProposer",
    "EvidenceRules",
    "EvolutionStream",
    "FeedbackStream",
    "GateReport",
    "GateRules",
    "GepaOptimizer",
    "InsertOutcome",
    "InsertPolicy",
    "LearnReport",
    "LearningRules",
    "Ledger",
    "LifecyclePolicy",
    "Merged",
    "MinedComposite",
    "MiningResult",
    "MiningRules",
    "ModelJudge",
    "ModelSemanticJudge",
    "Observations",
    "Proposal",
    "ProposalRecord",
    "ProposedChange",
    "Proposer",
    "Rejected",
    "RejectionCode",
    "Round",
    "ShadowLimits",
    "ShadowRunner",
    "ToolManager",
    "UnmatchedWord",
    "UnreadableProposal",
    "ValidationPolicy",
    "ValidationReport",
    "Witness",
    "evolve",
    "insert_mined",
    "language_report",
    "mine",
    "propose_composites",
    "trajectories_of",
    "unmatched_words",
    "validate",
]

_MODULES = {
    "Added": "agentkit.evolution.insertion.outcome",
    "CanaryRouter": "agentkit.evolution.serving.canary",
    "CompositeCandidate": "agentkit.evolution.proposals.composites.proposer",
    "CompositeStream": "agentkit.evolution.proposals.composite_stream",
    "EpisodeGates": "agentkit.evolution.lifecycle.assessing",
    "EvidenceProposer": "agentkit.evolution.proposals.evidence_proposer",
    "EvidenceRules": "agentkit.evolution.proposals.evidence.lessons",
    "EvolutionStream": "agentkit.evolution.proposals.evolution_stream",
    "FeedbackStream": "agentkit.evolution.proposals.feedback_stream",
    "GateReport": "agentkit.evolution.gates.decision",
    "GateRules": "agentkit.evolution.gates.decision",
    "GepaOptimizer": "agentkit.evolution.proposals.optimizer",
    "InsertOutcome": "agentkit.evolution.insertion.outcome",
    "InsertPolicy": "agentkit.evolution.insertion.policy",
    "LearnReport": "agentkit.evolution.learning.report",
    "LearningRules": "agentkit.evolution.learning.rules",
    "Ledger": "agentkit.evolution.lifecycle.ledger",
    "LifecyclePolicy": "agentkit.evolution.lifecycle.policy",
    "Merged": "agentkit.evolution.insertion.outcome",
    "MinedComposite": "agentkit.evolution.mining.candidates",
    "MiningResult": "agentkit.evolution.mining.miner",
    "MiningRules": "agentkit.evolution.mining.miner",
    "ModelJudge": "agentkit.evolution.insertion.judge",
    "ModelSemanticJudge": "agentkit.evolution.validation.semantic_judge",
    "Observations": "agentkit.evolution.proposals.proposer",
    "Proposal": "agentkit.evolution.proposals.proposal",
    "ProposalRecord": "agentkit.evolution.lifecycle.record",
    "ProposedChange": "agentkit.evolution.validation.report",
    "Proposer": "agentkit.evolution.proposals.proposer",
    "Rejected": "agentkit.evolution.insertion.outcome",
    "RejectionCode": "agentkit.evolution.insertion.outcome",
    "Round": "agentkit.evolution.round_report",
    "ShadowLimits": "agentkit.evolution.serving.shadow",
    "ShadowRunner": "agentkit.evolution.serving.shadow",
    "ToolManager": "agentkit.evolution.manager",
    "UnmatchedWord": "agentkit.evolution.learning.unmatched",
    "UnreadableProposal": "agentkit.evolution.proposals.proposal",
    "ValidationPolicy": "agentkit.evolution.validation.policy",
    "ValidationReport": "agentkit.evolution.validation.report",
    "Witness": "agentkit.evolution.insertion.outcome",
    "evolve": "agentkit.evolution.round",
    "insert_mined": "agentkit.evolution.mining.inserting",
    "language_report": "agentkit.evolution.language.report",
    "mine": "agentkit.evolution.mining.miner",
    "propose_composites": "agentkit.evolution.proposals.composites.proposer",
    "trajectories_of": "agentkit.evolution.mining.sources",
    "unmatched_words": "agentkit.evolution.learning.unmatched",
    "validate": "agentkit.evolution.validation.validate",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
