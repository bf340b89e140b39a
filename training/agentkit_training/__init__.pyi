from ._version import __version__ as __version__
from .coevolution.checkpoint import FrozenEngine as FrozenEngine, coevolve as coevolve
from .coevolution.keeper import LibraryKeeper as LibraryKeeper
from .coevolution.records import CoevolutionStep as CoevolutionStep
from .coevolution.settings import (
    CoevolutionSettings as CoevolutionSettings,
    ablation as ablation,
)
from .coevolution.source import Coevolution as Coevolution
from .coevolution.stages import warm_up as warm_up
from .distributed.ranks import joined_ranks as joined_ranks
from .distributed.synchronising import synchronise as synchronise
from .engines.base import (
    Engine as Engine,
    OptimizerSettings as OptimizerSettings,
    Share as Share,
    Source as Source,
    StepReport as StepReport,
)
from .engines.lean import LeanEngine as LeanEngine
from .engines.objective import Objective as Objective
from .engines.trl.engine import TrlEngine as TrlEngine
from .engines.trl.vllm import (
    VllmSettings as VllmSettings,
    VllmWriter as VllmWriter,
)
from .export.handover import (
    Handover as Handover,
    export_library as export_library,
    hand_over as hand_over,
    load_handover as load_handover,
)
from .fine_tuning.examples import (
    Example as Example,
    make_examples as make_examples,
)
from .fine_tuning.training import SftSettings as SftSettings, sft as sft
from .interface import (
    LearningInterface as LearningInterface,
    collect_through as collect_through,
)
from .policy.loading import load_policy as load_policy
from .policy.lora import (
    LoraSettings as LoraSettings,
    load_adapter as load_adapter,
    merged as merged,
    save_adapter as save_adapter,
    with_lora as with_lora,
)
from .policy.policy import (
    CHAT_TEMPLATES as CHAT_TEMPLATES,
    Policy as Policy,
    tiny_policy as tiny_policy,
)
from .policy.reference import reference_policy as reference_policy
from .policy.saving import save_policy as save_policy
from .retriever import (
    Request as Request,
    RetrieverReport as RetrieverReport,
    RetrieverSettings as RetrieverSettings,
    requests_of as requests_of,
    train_retriever as train_retriever,
    write_vectors as write_vectors,
)
from .rewards import (
    Reward as Reward,
    RewardSum as RewardSum,
    Worth as Worth,
    rewarded as rewarded,
    saved_calls_reward as saved_calls_reward,
    tooldna_reward as tooldna_reward,
    verdict_reward as verdict_reward,
)
from .rollout.collecting import collect as collect
from .rollout.policy_model import PolicyModel as PolicyModel
from .rollout.samples import (
    Rollout as Rollout,
    TokenSequence as TokenSequence,
    token_sequences as token_sequences,
)
from .tasks.loading import (
    TaskSpec as TaskSpec,
    load_tasks_for_training as load_tasks_for_training,
)
from .tasks.splits import (
    Shares as Shares,
    TaskSplits as TaskSplits,
    leakage as leakage,
    split as split,
)
from .toolace.records import ToolAceSettings as ToolAceSettings
from .toolace.rounds import iterate as iterate
from .weighting import Weighting as Weighting
