"""The learning interface: what a policy is shown in training only (SEAL, section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit_training.interface.collecting import collect_through
    from agentkit_training.interface.cues import CueKinds, cued, cued_library
    from agentkit_training.interface.feedback import FeedbackModel, plain_error
    from agentkit_training.interface.guidelines import GUIDELINES, guideline_text, prevalent_labels
    from agentkit_training.interface.learning_interface import LearningInterface, Mode

__all__ = [
    "GUIDELINES",
    "CueKinds",
    "FeedbackModel",
    "LearningInterface",
    "Mode",
    "collect_through",
    "cued",
    "cued_library",
    "guideline_text",
    "plain_error",
    "prevalent_labels",
]

_MODULES = {
    "CueKinds": "agentkit_training.interface.cues",
    "FeedbackModel": "agentkit_training.interface.feedback",
    "GUIDELINES": "agentkit_training.interface.guidelines",
    "LearningInterface": "agentkit_training.interface.learning_interface",
    "Mode": "agentkit_training.interface.learning_interface",
    "collect_through": "agentkit_training.interface.collecting",
    "cued": "agentkit_training.interface.cues",
    "cued_library": "agentkit_training.interface.cues",
    "guideline_text": "agentkit_training.interface.guidelines",
    "plain_error": "agentkit_training.interface.feedback",
    "prevalent_labels": "agentkit_training.interface.guidelines",
}

__getattr__ = lazy_door(__name__, _MODULES)
