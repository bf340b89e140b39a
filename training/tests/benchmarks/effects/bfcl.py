"""What the effects on BFCL have in common: slices of the held-out questions, and asking them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agentkit.evaluation import Benchmark, EvaluationReport, EvaluationSettings
from agentkit.models.base import ChatModel
from agentkit_training.jobs.evaluate import evaluate_job

EXAMPLES = Path(__file__).parents[3] / "examples"
COMMON = (
    'tasks.categories=["multiple", "live_simple"]',
    "tasks.shares.validation=0",
    "tasks.validation=0",
    "tasks.test=400",
    # A third faster on a CPU; fine-tuning in one process keeps float32 copies anyway.
    "policy.lora.full_precision=false",
)
"""What differs from the examples' configurations: nothing is chosen here, so no validation."""


def of_seed(seed: int) -> list[str]:
    """The changes that give a seed samples, an order and adapters of its own."""
    return [*COMMON, f"tasks.seed={seed}", f"sft.seed={seed}", f"policy.lora.seed={seed}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What a model answered.

    Attributes:
        passed: Whether each question was answered rightly.
        labels: How often the diagnosis gave each label.
        completion_tokens: Tokens written, in all.
    """

    passed: Mapping[str, bool]
    labels: Mapping[str, int]
    completion_tokens: int

    @property
    def right(self) -> int:
        """Questions that were answered rightly."""
        return sum(self.passed.values())


def held_out(test: Benchmark, seed: int, count: int) -> Benchmark:
    """The questions of a seed; those of the next one are others, until all have had their turn.

    Args:
        test: All held-out questions.
        seed: Whose turn it is.
        count: How many each seed is asked.
    """
    tasks = sorted(test.tasks, key=lambda task: task.task_id)
    random.Random(0).shuffle(tasks)  # one order for all seeds
    start = seed * count % len(tasks)
    return replace(test, tasks=tuple((tasks + tasks)[start : start + count]))


def asked(model: ChatModel, benchmark: Benchmark, settings: EvaluationSettings) -> Answers:
    """Ask every question once, at temperature 0."""
    return answers_of(evaluate_job(model, benchmark, settings, concurrency=1))


def answers_of(report: EvaluationReport) -> Answers:
    """What was answered, of a report."""
    return Answers(
        passed={one.task: one.passed == one.attempts for one in report.results},
        labels={str(name): count for name, count in report.total.turn_labels.items()},
        completion_tokens=report.total.usage.completion_tokens,
    )


def keep(file: Path, answers: Answers, **facts: object) -> None:
    """Write what was answered, with what else is to be known of it."""
    record = {**facts, **asdict(answers)}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    new.replace(file)


def kept(file: Path) -> Answers:
    """What ``keep`` wrote."""
    record = json.loads(file.read_text(encoding="utf-8"))
    return Answers(**{name: record[name] for name in Answers.__dataclass_fields__})
