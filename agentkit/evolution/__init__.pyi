from .compare import EpisodeGates as EpisodeGates
from .decide import LifecyclePolicy as LifecyclePolicy
from .duplicates import ModelJudge as ModelJudge
from .gates import GateReport as GateReport
from .gates import GateRules as GateRules
from .insert_outcomes import Added as Added
from .insert_outcomes import InsertOutcome as InsertOutcome
from .insert_outcomes import InsertPolicy as InsertPolicy
from .insert_outcomes import Merged as Merged
from .insert_outcomes import Rejected as Rejected
from .insert_outcomes import RejectionCode as RejectionCode
from .insert_outcomes import Witness as Witness
from .language.report import language_report as language_report
from .learning import LearningRules as LearningRules
from .learning import LearnReport as LearnReport
from .ledger import Ledger as Ledger
from .lifting import MinedComposite as MinedComposite
from .manager import ToolManager as ToolManager
from .mined import insert_mined as insert_mined
from .mining import MiningResult as MiningResult
from .mining import MiningRules as MiningRules
from .mining import mine as mine
from .proposal import Proposal as Proposal
from .proposal import ProposalRecord as ProposalRecord
from .proposal import UnreadableProposal as UnreadableProposal
from .proposer import Observations as Observations
from .proposer import Proposer as Proposer
from .proposers.composites import CompositeCandidate as CompositeCandidate
from .proposers.composites import CompositeStream as CompositeStream
from .proposers.composites import propose_composites as propose_composites
from .proposers.evidence import EvidenceProposer as EvidenceProposer
from .proposers.observed import EvidenceRules as EvidenceRules
from .proposers.optimizer import GepaOptimizer as GepaOptimizer
from .proposers.streams import EvolutionStream as EvolutionStream
from .proposers.streams import FeedbackStream as FeedbackStream
from .round import Round as Round
from .round import evolve as evolve
from .serving import CanaryRouter as CanaryRouter
from .shadow import ShadowLimits as ShadowLimits
from .shadow import ShadowRunner as ShadowRunner
from .trajectories import trajectories_of as trajectories_of
from .usage import UnmatchedWord as UnmatchedWord
from .usage import unmatched_words as unmatched_words
from .validation.policy import ValidationPolicy as ValidationPolicy
from .validation.report import (
    ProposedChange as ProposedChange,
)
from .validation.report import (
    ValidationReport as ValidationReport,
)
from .validation.semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .validation.validate import validate as validate
