"""Training for agentkit: co-evolution of a policy, its tools' texts and their library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door
from agentkit_training._version import __version__

if TYPE_CHECKING:
    from agentkit_training.policy.loading import load_policy
    from agentkit_training.policy.policy import Policy
    from agentkit_training.policy.tiny import tiny_policy
    from agentkit_training.rollout.collecting import collect
    from agentkit_training.rollout.policy_model import PolicyModel
    from agentkit_training.rollout.samples import Rollout, TokenSequence, token_sequences

__all__ = [
    "Policy",
    "PolicyModel",
    "Rollout",
    "TokenSequence",
    "__version__",
    "collect",
    "load_policy",
    "tiny_policy",
    "token_sequences",
]

_MODULES = {
    "Policy": "agentkit_training.policy.policy",
    "PolicyModel": "agentkit_training.rollout.policy_model",
    "Rollout": "agentkit_training.rollout.samples",
    "TokenSequence": "agentkit_training.rollout.samples",
    "collect": "agentkit_training.rollout.collecting",
    "load_policy": "agentkit_training.policy.loading",
    "tiny_policy": "agentkit_training.policy.tiny",
    "token_sequences": "agentkit_training.rollout.samples",
}

__getattr__ = lazy_door(__name__, _MODULES)
