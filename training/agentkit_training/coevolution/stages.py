"""CoCoDA's three stages (Algorithm 1), one after another.

1. ``warm_up``: the base policy tries the seed tasks; what recurs in its successes, and in gold
   trajectories where there are some, becomes composites.
2. A cold start: the policy is fine-tuned to use them. What with is the caller's business
   (``agentkit_training.fine_tuning``).
3. ``coevolve``: policy and library learn together.

Where we differ from the paper:

* Its teacher, a model of 32B parameters, writes tools from each trajectory. Here what recurs in
  several trajectories is counted (``agentkit.evolution.mine``). A teacher is asked as well where
  the keeper has one; or give gold trajectories of one to learn from it.
* Its library begins empty. Ours holds the benchmark's primitives, as its main experiments do
  (appendix E: 42 of them), and composites are all that is distilled.
* Its seed queries are 512 of the training stream, tried once; how many, and how often, is given.
* Its reference policy is the one after stage 2. Freeze a copy then, or switch adapters off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit_training.coevolution.checkpoint import coevolve, newest_checkpoint
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.records import ProposalOutcome
from agentkit_training.coevolution.settings import as_learned_from, with_stable_ids
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.tasks import warm_up_seed
from agentkit_training.engines.base import Engine
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout

ColdStart: TypeAlias = Callable[[Library, Sequence[Rollout]], None]
"""Fine-tunes the policy in place, given the warm library and the rollouts of stage 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp:
    """What stage 1 came to.

    Attributes:
        rollouts: Those of the base policy, failed ones too.
        distilled: What was proposed, and what became of it.
        library: The warm library.
    """

    rollouts: tuple[Rollout, ...]
    distilled: tuple[ProposalOutcome, ...]
    library: Library


def warm_up(
    model: RolloutModel,
    keeper: LibraryKeeper,
    seed_tasks: Benchmark,
    *,
    attempts: int = 1,
    gold: Iterable[Episode] = (),
    asking: EvaluationSettings | None = None,
) -> WarmUp:
    """Stage 1: distil composites from what the base policy does right (lines 4 to 11).

    Args:
        model: The base policy.
        keeper: The library, which gets the composites.
        seed_tasks: What it tries.
        attempts: How often each.
        gold: Trajectories to learn from as well, with verdicts, or they count for nothing.
        asking: How to ask.
    """
    settings = keeper.settings
    before = keeper.library
    tried = wait_for(
        collect(
            model,
            seed_tasks,
            library=before,
            attempts=attempts,
            temperature=settings.temperature,
            seed=warm_up_seed(settings),
            settings=replace(asking or EvaluationSettings(), tools=settings.tools),
        )
    )
    rollouts = with_stable_ids(tried, run=f"{settings.name}-seed", step=0)
    sound = [one for one in rollouts if not one.fault]
    episodes = [*(as_learned_from(e) for one in sound for e in one.episodes), *gold]
    keeper.keep(episodes)
    distilled = keeper.distil(episodes)
    return WarmUp(rollouts=rollouts, distilled=distilled, library=keeper.library)


def cocoda(
    policy: Policy,
    source: Coevolution,
    engine: Engine,
    *,
    seed_tasks: Benchmark,
    cold_start: ColdStart | None = None,
    gold: Iterable[Episode] = (),
    attempts: int = 1,
    folder: Path | None = None,
    every: int = 1,
) -> Coevolution:
    """All three stages. A run that goes on from a checkpoint has the first two behind it.

    Args:
        policy: What learns.
        source: Library, tasks and settings of stage 3.
        engine: How the policy learns in stage 3.
        seed_tasks: What the base policy tries in stage 1.
        cold_start: Stage 2; None leaves it out.
        gold: Trajectories for stage 1.
        attempts: At each seed task.
        folder: Where checkpoints of stage 3 go.
        every: After how many steps one is written.
    """
    if folder is None or newest_checkpoint(folder) is None:
        warm = warm_up(
            source.model,
            source.keeper,
            seed_tasks,
            attempts=attempts,
            gold=gold,
            asking=source.asking,
        )
        if cold_start is not None:
            cold_start(warm.library, warm.rollouts)
    return coevolve(policy, source, engine, folder=folder, every=every)
