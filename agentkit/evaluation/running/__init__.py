"""Asking a benchmark's questions, judging the answers, keeping them as episodes."""

from agentkit.evaluation.running.evaluation import RunOutcome, evaluate
from agentkit.evaluation.running.replaying import RecordedAnswers
from agentkit.evaluation.running.resuming import episodes_of_run
from agentkit.evaluation.running.settings import EvaluationProgress, EvaluationSettings

__all__ = [
    "EvaluationProgress",
    "EvaluationSettings",
    "RecordedAnswers",
    "RunOutcome",
    "episodes_of_run",
    "evaluate",
]
