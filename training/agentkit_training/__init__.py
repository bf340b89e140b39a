"""Training for agentkit: co-evolution of a policy, its tools' texts and their library.

=================  ===============================================================================
``tasks/``         1. what is tried: tasks, split without leakage
``policy/``        2. the model that learns: weights, adapters, templates
``generation/``    3. writing many answers at once
``rollout/``       4. attempts through the runtime's own agent, token for token
``rewards/``       5. what they are worth; ``weighting/`` how much they count
``interface/``     what training prompts have more than evaluation's
``engines/``       6. how the policy learns: lean, TRL; ``distributed/`` several processes
``fine_tuning/``   fine-tuning; ``difficulty``, ``selection``, ``refine_samples``, ``toolace/``
``coevolution/``   7. the library learns beside the policy
``export/``        8. out of training, into the runtime
``config/``        what a run is asked for; ``jobs/`` whole runs; ``runs/`` their folders
``plan/``          what a run needs; ``report/`` its curves; ``cli/`` the commands
=================  ===============================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door
from agentkit_training._version import __version__

if TYPE_CHECKING:
    from agentkit_training.coevolution.frozen import FrozenEngine
    from agentkit_training.coevolution.keeper import LibraryKeeper
    from agentkit_training.coevolution.records import CoevolutionStep
    from agentkit_training.coevolution.running import coevolve
    from agentkit_training.coevolution.settings import CoevolutionSettings, ablation
    from agentkit_training.coevolution.source import Coevolution
    from agentkit_training.coevolution.stages import cocoda
    from agentkit_training.distributed.synchronising import synchronise
    from agentkit_training.distributed.torch_ranks import joined_ranks
    from agentkit_training.engines.base import Engine, OptimizerSettings, Share, Source, StepReport
    from agentkit_training.engines.lean import LeanEngine
    from agentkit_training.engines.objective import Objective
    from agentkit_training.engines.trl.engine import TrlEngine
    from agentkit_training.engines.trl.vllm import VllmSettings, VllmWriter
    from agentkit_training.export.handover import Handover, hand_over, load_handover
    from agentkit_training.export.library import export_library
    from agentkit_training.fine_tuning.examples import Example, make_examples
    from agentkit_training.fine_tuning.settings import SftSettings
    from agentkit_training.fine_tuning.training import sft
    from agentkit_training.interface.collecting import collect_through
    from agentkit_training.interface.learning_interface import LearningInterface
    from agentkit_training.policy.loading import load_policy
    from agentkit_training.policy.lora import (
        LoraSettings,
        load_adapter,
        merged,
        save_adapter,
        with_lora,
    )
    from agentkit_training.policy.policy import Policy
    from agentkit_training.policy.reference import reference_policy
    from agentkit_training.policy.saving import save_policy
    from agentkit_training.policy.templates import CHAT_TEMPLATES
    from agentkit_training.policy.tiny import tiny_policy
    from agentkit_training.rewards.combining import RewardSum
    from agentkit_training.rewards.composites import saved_calls_reward
    from agentkit_training.rewards.reward import Reward, Worth, rewarded, verdict_reward
    from agentkit_training.rewards.tooldna import tooldna_reward
    from agentkit_training.rollout.collecting import collect
    from agentkit_training.rollout.policy_model import PolicyModel
    from agentkit_training.rollout.samples import Rollout, TokenSequence, token_sequences
    from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training
    from agentkit_training.tasks.splits import Shares, TaskSplits
    from agentkit_training.tasks.splitting import leakage, split
    from agentkit_training.toolace.iterations import iterate
    from agentkit_training.toolace.settings import ToolAceSettings
    from agentkit_training.weighting.dynamic import DynamicWeighting
    from agentkit_training.weighting.fixed import FixedWeighting
    from agentkit_training.weighting.normalised import MeanNormalised
    from agentkit_training.weighting.protocol import Weighting, weighted_rollouts

__all__ = [
    "CHAT_TEMPLATES",
    "Coevolution",
    "CoevolutionSettings",
    "CoevolutionStep",
    "DynamicWeighting",
    "Engine",
    "Example",
    "FixedWeighting",
    "FrozenEngine",
    "Handover",
    "LeanEngine",
    "LearningInterface",
    "LibraryKeeper",
    "LoraSettings",
    "MeanNormalised",
    "Objective",
    "OptimizerSettings",
    "Policy",
    "PolicyModel",
    "Reward",
    "RewardSum",
    "Rollout",
    "SftSettings",
    "Share",
    "Shares",
    "Source",
    "StepReport",
    "TaskSpec",
    "TaskSplits",
    "TokenSequence",
    "ToolAceSettings",
    "TrlEngine",
    "VllmSettings",
    "VllmWriter",
    "Weighting",
    "Worth",
    "__version__",
    "ablation",
    "cocoda",
    "coevolve",
    "collect",
    "collect_through",
    "export_library",
    "hand_over",
    "iterate",
    "joined_ranks",
    "leakage",
    "load_adapter",
    "load_handover",
    "load_policy",
    "load_tasks_for_training",
    "make_examples",
    "merged",
    "reference_policy",
    "rewarded",
    "save_adapter",
    "save_policy",
    "saved_calls_reward",
    "sft",
    "split",
    "synchronise",
    "tiny_policy",
    "token_sequences",
    "tooldna_reward",
    "verdict_reward",
    "weighted_rollouts",
    "with_lora",
]

_MODULES = {
    "CHAT_TEMPLATES": "agentkit_training.policy.templates",
    "Coevolution": "agentkit_training.coevolution.source",
    "CoevolutionSettings": "agentkit_training.coevolution.settings",
    "CoevolutionStep": "agentkit_training.coevolution.records",
    "DynamicWeighting": "agentkit_training.weighting.dynamic",
    "Engine": "agentkit_training.engines.base",
    "Example": "agentkit_training.fine_tuning.examples",
    "FixedWeighting": "agentkit_training.weighting.fixed",
    "FrozenEngine": "agentkit_training.coevolution.frozen",
    "Handover": "agentkit_training.export.handover",
    "LeanEngine": "agentkit_training.engines.lean",
    "LearningInterface": "agentkit_training.interface.learning_interface",
    "LibraryKeeper": "agentkit_training.coevolution.keeper",
    "LoraSettings": "agentkit_training.policy.lora",
    "MeanNormalised": "agentkit_training.weighting.normalised",
    "Objective": "agentkit_training.engines.objective",
    "OptimizerSettings": "agentkit_training.engines.base",
    "Policy": "agentkit_training.policy.policy",
    "PolicyModel": "agentkit_training.rollout.policy_model",
    "Reward": "agentkit_training.rewards.reward",
    "RewardSum": "agentkit_training.rewards.combining",
    "Rollout": "agentkit_training.rollout.samples",
    "SftSettings": "agentkit_training.fine_tuning.settings",
    "Share": "agentkit_training.engines.base",
    "Shares": "agentkit_training.tasks.splits",
    "Source": "agentkit_training.engines.base",
    "StepReport": "agentkit_training.engines.base",
    "TaskSpec": "agentkit_training.tasks.loading",
    "TaskSplits": "agentkit_training.tasks.splits",
    "TokenSequence": "agentkit_training.rollout.samples",
    "ToolAceSettings": "agentkit_training.toolace.settings",
    "TrlEngine": "agentkit_training.engines.trl.engine",
    "VllmSettings": "agentkit_training.engines.trl.vllm",
    "VllmWriter": "agentkit_training.engines.trl.vllm",
    "Weighting": "agentkit_training.weighting.protocol",
    "Worth": "agentkit_training.rewards.reward",
    "ablation": "agentkit_training.coevolution.settings",
    "cocoda": "agentkit_training.coevolution.stages",
    "coevolve": "agentkit_training.coevolution.running",
    "collect": "agentkit_training.rollout.collecting",
    "collect_through": "agentkit_training.interface.collecting",
    "export_library": "agentkit_training.export.library",
    "hand_over": "agentkit_training.export.handover",
    "iterate": "agentkit_training.toolace.iterations",
    "joined_ranks": "agentkit_training.distributed.torch_ranks",
    "leakage": "agentkit_training.tasks.splitting",
    "load_adapter": "agentkit_training.policy.lora",
    "load_handover": "agentkit_training.export.handover",
    "load_policy": "agentkit_training.policy.loading",
    "load_tasks_for_training": "agentkit_training.tasks.loading",
    "make_examples": "agentkit_training.fine_tuning.examples",
    "merged": "agentkit_training.policy.lora",
    "reference_policy": "agentkit_training.policy.reference",
    "rewarded": "agentkit_training.rewards.reward",
    "save_adapter": "agentkit_training.policy.lora",
    "save_policy": "agentkit_training.policy.saving",
    "saved_calls_reward": "agentkit_training.rewards.composites",
    "sft": "agentkit_training.fine_tuning.training",
    "split": "agentkit_training.tasks.splitting",
    "synchronise": "agentkit_training.distributed.synchronising",
    "tiny_policy": "agentkit_training.policy.tiny",
    "token_sequences": "agentkit_training.rollout.samples",
    "tooldna_reward": "agentkit_training.rewards.tooldna",
    "verdict_reward": "agentkit_training.rewards.reward",
    "weighted_rollouts": "agentkit_training.weighting.protocol",
    "with_lora": "agentkit_training.policy.lora",
}

__getattr__ = lazy_door(__name__, _MODULES)
