from .gates.decision import (
    GateReport as GateReport,
)
from .gates.decision import (
    GateRules as GateRules,
)
from .insertion.judge import ModelJudge as ModelJudge
from .insertion.outcome import (
    Added as Added,
)
from .insertion.outcome import (
    InsertOutcome as InsertOutcome,
)
from .insertion.outcome import (
    Merged as Merged,
)
from .insertion.outcome import (
    Rejected as Rejected,
)
from .insertion.outcome import (
    RejectionCode as RejectionCode,
)
from .insertion.outcome import (
    Witness as Witness,
)
from .insertion.policy import InsertPolicy as InsertPolicy
from .learning.report import LearnReport as LearnReport
from .learning.rules import LearningRules as LearningRules
from .learning.unmatched import (
    UnmatchedWord as UnmatchedWord,
)
from .learning.unmatched import (
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
)
from .mining.miner import (
    MiningRules as MiningRules,
)
from .mining.miner import (
    mine as mine,
)
from .mining.sources import trajectories_of as trajectories_of
from .proposals.composite_stream import CompositeStream as CompositeStream
from .proposals.composites.proposer import (
    CompositeCandidate as CompositeCandidate,
)
from .proposals.composites.proposer import (
    propose_composites as propose_composites,
)
from .proposals.evidence.lessons import EvidenceRules as EvidenceRules
from .proposals.evidence_proposer import EvidenceProposer as EvidenceProposer
from .proposals.evolution_stream import EvolutionStream as EvolutionStream
from .proposals.feedback_stream import FeedbackStream as FeedbackStream
from .proposals.optimizer import GepaOptimizer as GepaOptimizer
from .proposals.proposal import (
    Proposal as Proposal,
)
from .proposals.proposal import (
    UnreadableProposal as UnreadableProposal,
)
from .proposals.proposer import (
    Observations as Observations,
)
from .proposals.proposer import (
    Proposer as Proposer,
)
from .round import evolve as evolve
from .round_report import Round as Round
from .serving.canary import CanaryRouter as CanaryRouter
from .serving.shadow import (
    ShadowLimits as ShadowLimits,
)
from .serving.shadow import (
    ShadowRunner as ShadowRunner,
)
from .validation.policy import ValidationPolicy as ValidationPolicy
from .validation.report import (
    ProposedChange as ProposedChange,
)
from .validation.report import (
    ValidationReport as ValidationReport,
)
from .validation.semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .validation.validate import validate as validate
