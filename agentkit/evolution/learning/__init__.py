"""Learning from use: successful episodes become worked examples of the tools that they called.

``uses`` says which words each call served, ``lessons`` chooses what is new and worth keeping, with
``variety`` and ``private``; ``ToolManager.learn`` writes it, and ``report`` tells what came of it.
``unmatched`` finds the words that users say and no tool has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.learning.private import private_part
    from agentkit.evolution.learning.report import LearnReport, Skipped, SkipReason
    from agentkit.evolution.learning.rules import LearningRules
    from agentkit.evolution.learning.unmatched import UnmatchedWord, unmatched_words
    from agentkit.evolution.learning.uses import Passed, Use, has_passed, uses_of

__all__ = [
    "LearnReport",
    "LearningRules",
    "Passed",
    "SkipReason",
    "Skipped",
    "UnmatchedWord",
    "Use",
    "has_passed",
    "private_part",
    "unmatched_words",
    "uses_of",
]

_MODULES = {
    "LearnReport": "agentkit.evolution.learning.report",
    "LearningRules": "agentkit.evolution.learning.rules",
    "Passed": "agentkit.evolution.learning.uses",
    "SkipReason": "agentkit.evolution.learning.report",
    "Skipped": "agentkit.evolution.learning.report",
    "UnmatchedWord": "agentkit.evolution.learning.unmatched",
    "Use": "agentkit.evolution.learning.uses",
    "has_passed": "agentkit.evolution.learning.uses",
    "private_part": "agentkit.evolution.learning.private",
    "unmatched_words": "agentkit.evolution.learning.unmatched",
    "uses_of": "agentkit.evolution.learning.uses",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
