"""Trying proposals on real requests: unseen beside the answers, or with a share of the sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.serving.canary import CanaryRouter
    from agentkit.evolution.serving.feedback import UserFeedback, feedback_on, keep_feedback
    from agentkit.evolution.serving.judging import CanaryJudge, judged, outcome
    from agentkit.evolution.serving.pinned import PinRouter
    from agentkit.evolution.serving.shadow import ShadowLimits, ShadowRunner
    from agentkit.evolution.serving.watch import LedgerWatch

__all__ = [
    "CanaryJudge",
    "CanaryRouter",
    "LedgerWatch",
    "PinRouter",
    "ShadowLimits",
    "ShadowRunner",
    "UserFeedback",
    "feedback_on",
    "judged",
    "keep_feedback",
    "outcome",
]

_MODULES = {
    "CanaryJudge": "agentkit.evolution.serving.judging",
    "CanaryRouter": "agentkit.evolution.serving.canary",
    "LedgerWatch": "agentkit.evolution.serving.watch",
    "PinRouter": "agentkit.evolution.serving.pinned",
    "ShadowLimits": "agentkit.evolution.serving.shadow",
    "ShadowRunner": "agentkit.evolution.serving.shadow",
    "UserFeedback": "agentkit.evolution.serving.feedback",
    "feedback_on": "agentkit.evolution.serving.feedback",
    "judged": "agentkit.evolution.serving.judging",
    "keep_feedback": "agentkit.evolution.serving.feedback",
    "outcome": "agentkit.evolution.serving.judging",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
