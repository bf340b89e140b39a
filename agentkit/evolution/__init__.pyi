from .gates.decision import (
    GateReport as GateReport,
    GateRules as GateRules,
)
from .insertion.judge import ModelJudge as ModelJudge
from .insertion.outcome import (
    Added as Added,
    InsertOutcome as InsertOutcome,
    Merged as Merged,
    Rejected as Rejected,
    RejectionCode as RejectionCode,
    Witness as Witness,
)
from .insertion.policy import InsertPolicy as InsertPolicy
from .language.report import language_report as language_report
from .learning.report import LearnReport as LearnReport
from .learning.rules import LearningRules as LearningRules
from .learning.unmatched import (
    UnmatchedWord as UnmatchedWord,
    unmatched_words as unmatched_words,
)
from .lifecycle.assessing import EpisodeGates as EpisodeGates
from .lifecycle.ledger import Ledger as Ledger
from .lifecycle.policy import LifecyclePolicy as LifecyclePolicy
from .lifecycle.record import ProposalRecord as ProposalRecord
from .manager import ToolManager as ToolManager
from .mining.candidates import MinedComposite as MinedComposite
from .mining.inserting import insert_mined as insert_mined
from .mining.miner import (
    MiningResult as MiningResult,
    MiningRules as MiningRules,
    mine as mine,
)
from .mining.sources import trajectories_of as trajectories_of
from .proposals.composite_stream import CompositeStream as CompositeStream
from .proposals.composites.proposer import (
    CompositeCandidate as CompositeCandidate,
    propose_composites as propose_composites,
)
from .proposals.evidence.lessons import EvidenceRules as EvidenceRules
from .proposals.evidence_proposer import EvidenceProposer as EvidenceProposer
from .proposals.evolution_stream import EvolutionStream as EvolutionStream
from .proposals.feedback_stream import FeedbackStream as FeedbackStream
from .proposals.optimizer import GepaOptimizer as GepaOptimizer
from .proposals.proposal import (
    Proposal as Proposal,
    UnreadableProposal as UnreadableProposal,
)
from .proposals.proposer import (
    Observations as Observations,
    Proposer as Proposer,
)
from .round import evolve as evolve
from .round_report import Round as Round
from .serving.canary import CanaryRouter as CanaryRouter
from .serving.shadow import (
    ShadowLimits as ShadowLimits,
    ShadowRunner as ShadowRunner,
)
from .validation.policy import ValidationPolicy as ValidationPolicy
from .validation.report import (
    ProposedChange as ProposedChange,
    ValidationReport as ValidationReport,
)
from .validation.semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .validation.validate import validate as validate
