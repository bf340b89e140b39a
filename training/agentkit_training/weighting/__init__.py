"""How much each rollout's advantage counts, by what its turns are labelled with (SEAL, 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit_training.weighting.dynamic import DynamicWeighting
    from agentkit_training.weighting.fixed import FixedWeighting
    from agentkit_training.weighting.normalised import MeanNormalised, scaled_to_mean
    from agentkit_training.weighting.protocol import Weighting, mean_weight, weighted_rollouts
    from agentkit_training.weighting.utilities import (
        CLIP,
        PAPER_UTILITIES,
        diagnostic_weight,
        label_profile,
    )

__all__ = [
    "CLIP",
    "PAPER_UTILITIES",
    "DynamicWeighting",
    "FixedWeighting",
    "MeanNormalised",
    "Weighting",
    "diagnostic_weight",
    "label_profile",
    "mean_weight",
    "scaled_to_mean",
    "weighted_rollouts",
]

_MODULES = {
    "CLIP": "agentkit_training.weighting.utilities",
    "DynamicWeighting": "agentkit_training.weighting.dynamic",
    "FixedWeighting": "agentkit_training.weighting.fixed",
    "MeanNormalised": "agentkit_training.weighting.normalised",
    "PAPER_UTILITIES": "agentkit_training.weighting.utilities",
    "Weighting": "agentkit_training.weighting.protocol",
    "diagnostic_weight": "agentkit_training.weighting.utilities",
    "label_profile": "agentkit_training.weighting.utilities",
    "mean_weight": "agentkit_training.weighting.protocol",
    "scaled_to_mean": "agentkit_training.weighting.normalised",
    "weighted_rollouts": "agentkit_training.weighting.protocol",
}

__getattr__ = lazy_door(__name__, _MODULES)
