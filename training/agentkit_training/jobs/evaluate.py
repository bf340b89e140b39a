"""``evaluate_job``: one model on one part of the tasks, as the runtime's evaluation report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.evaluation import (
    Benchmark,
    EvaluationReport,
    EvaluationSettings,
    episodes_of_run,
    evaluate,
    summarise,
)
from agentkit.library import Library
from agentkit.models.base import ChatModel, ModelSettings
from agentkit_training.coevolution.offering import with_composites
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel

_RUN = "evaluation"


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What is asked, and how.

    Attributes:
        benchmark: The tasks.
        library: What the tools are called and described as; None for the tasks' own.
        settings: How to ask.
        attempts: Tries at each task, for pass@k and pass^k.
        temperature: Of sampling; 0 is greedy.
        concurrency: Attempts under way at the same time, with a model that is no policy.
    """

    benchmark: Benchmark
    library: Library | None
    settings: EvaluationSettings
    attempts: int = 1
    temperature: float = 0.0
    concurrency: int = 4

    @property
    def tasks(self) -> Benchmark:
        """The tasks, offering the library's composites beside what these are made of."""
        return (
            self.benchmark
            if self.library is None
            else with_composites(self.benchmark, self.library)
        )


def evaluate_job(model: ChatModel, asked: Examination, *, command: str = "") -> EvaluationReport:
    """Ask every task.

    Args:
        model: A policy, or any chat model of the runtime: hosted ones and local weights with an
            adapter are asked in the same way.
        asked: What to ask.
        command: How to repeat it, for the reader.

    Raises:
        RunError: The model failed again and again.
    """
    if isinstance(model, PolicyModel):
        episodes = wait_for(_of_policy(model, asked))
    else:
        episodes = wait_for(_of_other(model, asked))
    planned = Counter(
        task.category for task in asked.benchmark.tasks for _ in range(asked.attempts)
    )
    return summarise(episodes, planned=planned, command=command)


async def _of_policy(model: PolicyModel, asked: Examination) -> tuple[Episode, ...]:
    """All attempts at once, as in training."""
    rollouts = await collect(
        model,
        asked.tasks,
        library=asked.library,
        attempts=asked.attempts,
        temperature=asked.temperature,
        settings=asked.settings,
    )
    return tuple(episode for one in rollouts for episode in one.episodes)


async def _of_other(model: ChatModel, asked: Examination) -> tuple[Episode, ...]:
    store = open_store("memory:")
    settings = replace(
        asked.settings,
        attempts=asked.attempts,
        settings=ModelSettings(temperature=asked.temperature),
    )
    try:
        await evaluate(
            asked.tasks,
            model=model,
            store=store,
            run=_RUN,
            library=asked.library,
            settings=settings,
            concurrency=asked.concurrency,
        )
        return tuple(episodes_of_run(store, _RUN))
    finally:
        store.close()
