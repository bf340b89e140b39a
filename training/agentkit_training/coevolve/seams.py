"""The seam to SEAL's interface: what rollouts are asked in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentkit.diagnosis import FailureProfile
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the rollouts of a step are asked, and with which tools.

    Attributes:
        benchmark: The tasks, their worlds and how they are judged.
        library: What the tools are called and described as.
        settings: How to ask.
    """

    benchmark: Benchmark
    library: Library
    settings: EvaluationSettings


class Interface(Protocol):
    """Changes what is asked in training for what the policy fails at (SEAL, section 3.3).

    Tasks, gold and verifiers must stay. Evaluation never sees it.
    """

    def __call__(self, asked: Asked, profile: FailureProfile) -> Asked:
        """The same, with what the profile says is lacking."""
        ...
