"""``collect_through``: training rollouts, made through the learning interface."""

from __future__ import annotations

from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit_training.interface.learning_interface import LearningInterface
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout


async def collect_through(
    interface: LearningInterface,
    model: RolloutModel,
    benchmark: Benchmark,
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int = 0,
    settings: EvaluationSettings | None = None,
) -> tuple[Rollout, ...]:
    """Let the policy try every task, shown what the interface adds (SEAL, Eq. 8 and 13).

    Tasks, tools, worlds and verifiers are those of ``collect``, which is what an interface that is
    off comes to.

    Args:
        interface: What is added.
        model: The policy's model, without anything around it.
        benchmark: The tasks, their tools and how they are judged.
        library: What the tools are called and described as; None for the benchmark's own texts.
        attempts: Rollouts of each task.
        temperature: Of sampling; above 0 unless nothing is added.
        seed: Of the first attempt.
        settings: How to ask.

    Raises:
        UsageError: The temperature is 0, which evaluates, and the interface adds something.
    """
    if temperature == 0 and interface.helps:
        raise UsageError(
            "temperature 0 evaluates, and the learning interface is for training alone; use "
            "collect, or give a temperature above 0"
        )
    asked = settings or EvaluationSettings()
    shown = _shown(interface, benchmark, library, retrieves=asked.tools == "retrieved")
    return await collect(
        interface.model(model),
        benchmark,
        library=shown,
        attempts=attempts,
        temperature=temperature,
        seed=seed,
        settings=replace(asked, instructions=interface.instructions(asked.instructions)),
    )


def _shown(
    interface: LearningInterface, benchmark: Benchmark, library: Library | None, *, retrieves: bool
) -> Library | None:
    """The library as it is shown; of tools that no task offers the texts stay as they are."""
    if not interface.has_cues:
        return library
    known = Library() if library is None else library
    own = [one for one in benchmark.definitions if one.name not in known]
    offered = {name for task in benchmark.tasks for turn in task.turns for name in turn.offers}
    return interface.library(known.with_tools(own), names=None if retrieves else offered)
