"""CoCoDA's first stage (Algorithm 1): the library is warm before the policy learns.

The base policy tries the seed tasks; what recurs in its successes, and in gold trajectories where
there are some, becomes composites. In stage 2, a cold start, the policy is fine-tuned to use them:
gold trajectories are written anew with composites (``fine_tuning.solutions.shortened``).
``coevolve`` is stage 3.

Where we differ from the paper:

* Its teacher, a model of 32B parameters, writes tools from each trajectory. Here what recurs in
  several trajectories is counted (``agentkit.evolution.mine``). A teacher is asked as well where
  the keeper has one.
* Its library begins empty. Ours holds the benchmark's primitives, as its main experiments do
  (appendix E: 42 of them), and composites are all that is distilled.
* Its teacher writes the demonstrations of stage 2 (appendix D.2); here they are gold trajectories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.models.base import ChatModel
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.records import ProposalOutcome
from agentkit_training.coevolution.settings import as_learned_from, with_stable_ids
from agentkit_training.coevolution.tasks import warm_up_seed
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, led
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.samples import Rollout


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp:
    """What stage 1 came to.

    Attributes:
        tried: Rollouts of the base policy, of all processes.
        passed: Those that solved their task.
        distilled: What was proposed, and what became of it.
    """

    tried: int
    passed: int
    distilled: tuple[ProposalOutcome, ...]


def warm_up(
    model: ChatModel,
    keeper: LibraryKeeper,
    seed_tasks: Benchmark,
    *,
    attempts: int = 1,
    gold: Iterable[Episode] = (),
    asking: EvaluationSettings | None = None,
    ranks: Ranks = ALONE,
) -> WarmUp:
    """Stage 1: distil composites from what the base policy does right (lines 4 to 11).

    Several processes share the tasks out; rank 0 distils, and its keeper alone gets the composites.

    Args:
        model: The base policy.
        keeper: The library, which gets the composites.
        seed_tasks: What it tries.
        attempts: How often each.
        gold: Trajectories to learn from as well, with verdicts, or they count for nothing.
        asking: How to ask.
        ranks: The processes that hold the policy; all of them must call this.
    """
    settings = keeper.settings
    own = replace(seed_tasks, tasks=seed_tasks.tasks[ranks.rank :: ranks.world])
    tried: tuple[Rollout, ...] = ()
    if own.tasks:
        asked = collect(
            model,
            own,
            library=keeper.library,
            attempts=attempts,
            temperature=settings.temperature,
            seed=warm_up_seed(settings),
            settings=replace(asking or EvaluationSettings(), tools=settings.tools),
            retriever=settings.make_retriever(model),
        )
        tried = with_stable_ids(wait_for(asked), run=f"{settings.name}-seed", step=0)
    episodes = [as_learned_from(e) for one in tried if not one.fault for e in one.episodes]
    told = ranks.gather(
        {
            "tried": len(tried),
            "passed": sum(one.passed for one in tried),
            "episodes": [one.to_json() for one in episodes],
        }
    )

    def distilled(_: Beat) -> dict[str, Any]:
        everything = [Episode.from_json(one) for part in told for one in part["episodes"]]
        everything += gold
        keeper.keep(everything)
        return {
            "tried": sum(part["tried"] for part in told),
            "passed": sum(part["passed"] for part in told),
            "distilled": [asdict(one) for one in keeper.distil(everything)],
        }

    found = ranks.broadcast(led(ranks, distilled))
    outcomes = tuple(ProposalOutcome(**one) for one in found["distilled"])
    return WarmUp(tried=found["tried"], passed=found["passed"], distilled=outcomes)
