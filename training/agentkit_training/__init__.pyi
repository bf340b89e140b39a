from ._version import __version__ as __version__
from .coevolution.frozen import FrozenEngine as FrozenEngine
from .coevolution.keeper import LibraryKeeper as LibraryKeeper
from .coevolution.records import CoevolutionStep as CoevolutionStep
from .coevolution.running import coevolve as coevolve
from .coevolution.settings import (
    CoevolutionSettings as CoevolutionSettings,
)
from .coevolution.settings import (
    ablation as ablation,
)
from .coevolution.source import Coevolution as Coevolution
from .coevolution.stages import cocoda as cocoda
from .distributed.synchronising import synchronise as synchronise
from .distributed.torch_ranks import joined_ranks as joined_ranks
from .engines.base import (
    Engine as Engine,
)
from .engines.base import (
    OptimizerSettings as OptimizerSettings,
)
from .engines.base import (
    Share as Share,
)
from .engines.base import (
    Source as Source,
)
from .engines.base import (
    StepReport as StepReport,
)
from .engines.lean import LeanEngine as LeanEngine
from .engines.objective import Objective as Objective
from .engines.trl.engine import TrlEngine as TrlEngine
from .engines.trl.vllm import (
    VllmSettings as VllmSettings,
)
from .engines.trl.vllm import (
    VllmWriter as VllmWriter,
)
from .export.handover import (
    Handover as Handover,
)
from .export.handover import (
    hand_over as hand_over,
)
from .export.handover import (
    load_handover as load_handover,
)
from .export.library import export_library as export_library
from .fine_tuning.examples import (
    Example as Example,
)
from .fine_tuning.examples import (
    make_examples as make_examples,
)
from .fine_tuning.settings import SftSettings as SftSettings
from .fine_tuning.training import sft as sft
from .interface.collecting import collect_through as collect_through
from .interface.learning_interface import LearningInterface as LearningInterface
from .policy.loading import load_policy as load_policy
from .policy.lora import (
    LoraSettings as LoraSettings,
)
from .policy.lora import (
    load_adapter as load_adapter,
)
from .policy.lora import (
    merged as merged,
)
from .policy.lora import (
    save_adapter as save_adapter,
)
from .policy.lora import (
    with_lora as with_lora,
)
from .policy.policy import Policy as Policy
from .policy.reference import reference_policy as reference_policy
from .policy.saving import save_policy as save_policy
from .policy.templates import CHAT_TEMPLATES as CHAT_TEMPLATES
from .policy.tiny import tiny_policy as tiny_policy
from .rewards.combining import RewardSum as RewardSum
from .rewards.composites import saved_calls_reward as saved_calls_reward
from .rewards.reward import (
    Reward as Reward,
)
from .rewards.reward import (
    Worth as Worth,
)
from .rewards.reward import (
    rewarded as rewarded,
)
from .rewards.reward import (
    verdict_reward as verdict_reward,
)
from .rewards.tooldna import tooldna_reward as tooldna_reward
from .rollout.collecting import collect as collect
from .rollout.policy_model import PolicyModel as PolicyModel
from .rollout.samples import (
    Rollout as Rollout,
)
from .rollout.samples import (
    TokenSequence as TokenSequence,
)
from .rollout.samples import (
    token_sequences as token_sequences,
)
from .tasks.loading import (
    TaskSpec as TaskSpec,
)
from .tasks.loading import (
    load_tasks_for_training as load_tasks_for_training,
)
from .tasks.splits import (
    Shares as Shares,
)
from .tasks.splits import (
    TaskSplits as TaskSplits,
)
from .tasks.splitting import (
    leakage as leakage,
)
from .tasks.splitting import (
    split as split,
)
from .toolace.iterations import iterate as iterate
from .toolace.settings import ToolAceSettings as ToolAceSettings
from .weighting.dynamic import DynamicWeighting as DynamicWeighting
from .weighting.fixed import FixedWeighting as FixedWeighting
from .weighting.normalised import MeanNormalised as MeanNormalised
from .weighting.protocol import (
    Weighting as Weighting,
)
from .weighting.protocol import (
    weighted_rollouts as weighted_rollouts,
)
