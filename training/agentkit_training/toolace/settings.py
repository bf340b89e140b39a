"""How the iterations go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal

from agentkit.evaluation import EvaluationSettings
from agentkit_training.fine_tuning.prompting import Prompting
from agentkit_training.fine_tuning.settings import SftSettings
from agentkit_training.ranges import check_least
from agentkit_training.selection import SelectionSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAceSettings:
    """How to iterate. The defaults are those of ToolACE-R, section 4.1.

    Attributes:
        rounds: Most iterations; the paper finds no gain after the third.
        least_gain: A round that raises the accuracy by less ends the run. The paper says
            "marginal"; a point is our reading of it.
        attempts: Samples of each task for its difficulty (k).
        temperature: Of these samples.
        selection: Which samples are trained on.
        refines: Whether self-refine samples are added.
        first_answer: Which answer these refine: one of the samples, which costs nothing more, or
            the greedy one, which is what the runtime will refine.
        no_call: What to say where no call is right; such tasks are left out without it.
        prompting: How tools and calls are written.
        answer_tokens: Longest answer in rollouts and evaluation.
        batch_size: Most answers written at the same time.
        evaluation: How tasks are asked, in training with the same words; ``refine="adaptive"`` is
            Algorithm 1 and holds for validation alone.
        sft: How to fine-tune on what was selected: one epoch in the paper.
        seed: Of the samples; each round draws others.
    """

    rounds: int = 3
    least_gain: float = 0.01
    attempts: int = 8
    temperature: float = 1.0
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    refines: bool = True
    first_answer: Literal["sampled", "greedy"] = "sampled"
    no_call: str = ""
    prompting: Prompting = field(default_factory=Prompting)
    answer_tokens: int = 128
    batch_size: int = 64
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    sft: SftSettings = field(default_factory=SftSettings)
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(self, "rounds", "attempts", "answer_tokens", "batch_size")

    def to_json(self) -> str:
        """The settings as JSON text, by which runs are told apart. More rounds are no other run."""
        return json.dumps({**asdict(self), "rounds": None, "batch_size": None}, sort_keys=True)
