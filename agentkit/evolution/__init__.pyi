from .compare import EpisodeGates as EpisodeGates
from .decide import LifecyclePolicy as LifecyclePolicy
from .dry_run import InsertPolicy as InsertPolicy
from .exploration import Exploration as Exploration, explore as explore
from .gate_statistics import Elond as Elond
from .gates import (
    ArmScore as ArmScore,
    GateConfig as GateConfig,
    GateReport as GateReport,
    PairedScore as PairedScore,
    canary_gate as canary_gate,
    shadow_gate as shadow_gate,
)
from .insertion import CheckResult as CheckResult
from .learning import (
    LearnReport as LearnReport,
    feedback_on as feedback_on,
)
from .ledger import Ledger as Ledger
from .lifting import MinedComposite as MinedComposite
from .manager import ToolManager as ToolManager
from .mining import (
    MiningConfig as MiningConfig,
    MiningResult as MiningResult,
    insert_mined as insert_mined,
    mine as mine,
    submit_mined as submit_mined,
)
from .observers import (
    CanaryJudge as CanaryJudge,
    ShadowRunner as ShadowRunner,
    judged as judged,
)
from .proposal import (
    Observations as Observations,
    Proposal as Proposal,
    ProposalRecord as ProposalRecord,
    Proposer as Proposer,
)
from .proposers.blocks import Question as Question, read_answer as read_answer
from .proposers.composites import CompositeStream as CompositeStream
from .proposers.evidence import EvidenceProposer as EvidenceProposer
from .proposers.observed import EvidenceConfig as EvidenceConfig
from .proposers.optimizer import GepaOptimizer as GepaOptimizer, Score as Score
from .proposers.streams import EvolutionStream as EvolutionStream, FeedbackStream as FeedbackStream
from .round import EvolutionReport as EvolutionReport, evolve as evolve
from .serving import CanaryRouter as CanaryRouter, LedgerWatch as LedgerWatch
from .trajectories import is_success as is_success, trajectories_of as trajectories_of
from .validation.approvals import ValidationPolicy as ValidationPolicy
from .validation.checks import validate as validate
from .validation.report import (
    ProposedChange as ProposedChange,
    ValidationReport as ValidationReport,
)
from .validation.semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .worth import (
    Traffic as Traffic,
    Worth as Worth,
    WorthProposer as WorthProposer,
    worth_of as worth_of,
)
