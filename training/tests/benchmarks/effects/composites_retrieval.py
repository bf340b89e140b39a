"""Whether typed retrieval offers an evolved library's composites: the prompts, without a model.

Composites are made of the gold trajectories of arithmetic questions; then it is noted what the
runtime's own retrieval puts before a policy for each held-out question, of all six calculations::

    python tests/benchmarks/effects/composites_retrieval.py --seeds 1 2 3
"""

from __future__ import annotations

import argparse
from collections import Counter

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationSettings, Task
from agentkit.library import Library
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.tasks import pure_tools, with_composites
from agentkit_training.fine_tuning.examples import PromptReader
from agentkit_training.policy.tiny import tiny_policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.tasks.arithmetic import arithmetic, arithmetic_episodes


class Noting(PromptReader):
    """Notes what each prompt offers, by the question."""

    def __init__(self) -> None:
        super().__init__(tiny_policy())
        self.offers: dict[str, tuple[str, ...]] = {}

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """An empty answer."""
        question = next(one.text for one in request.messages if one.role == "user")
        self.offers[question] = tuple(tool.name for tool in request.tools)
        return await super().complete(request)


def evolved(train: Benchmark) -> Library:
    """The library after the gold trajectories of these questions."""
    keeper = LibraryKeeper(
        settings=CoevolutionSettings(composites=True),
        benchmark=train,
        model=PolicyModel(tiny_policy()),
        tools=pure_tools(train),
    )
    keeper.distil(arithmetic_episodes(train))
    return keeper.library


def offered(test: Benchmark, library: Library) -> Counter[str]:
    """Of how many prompts what is true."""
    reader = Noting()
    benchmark = with_composites(test, library)
    settings = EvaluationSettings(tools="retrieved", max_steps=1)
    wait_for(
        collect(reader, benchmark, library=library, attempts=1, temperature=0, settings=settings)
    )
    found: Counter[str] = Counter()
    for task in benchmark.tasks:
        found += _facts(task, reader.offers[task.request], library)
    return found


def _primitives(library: Library, name: str) -> list[str]:
    """The primitive calls on the lightest way through a tool."""
    children = library.dag.shortest_path(name)
    return [one for child in children for one in _primitives(library, child)] or [name]


def _facts(task: Task, names: tuple[str, ...], library: Library) -> Counter[str]:
    gold = Counter(one.name for one in task.expects[0].calls)
    whole = [Counter(_primitives(library, name)) == gold for name in names]
    return Counter(
        {
            "questions": 1,
            "tools": len(names),
            "no tool": int(not names),
            "all primitives of the gold calls": int(set(gold) <= set(names)),
            "a composite of all gold calls": int(any(whole)),
        }
    )


def main() -> None:
    """Print what is offered, over all seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    with_them, without = Counter[str](), Counter[str]()
    for seed in parser.parse_args().seeds:
        parts = arithmetic(seed=seed)
        library = evolved(parts.train)
        with_them += offered(parts.test, library)
        primitives = [tool for tool in library if not tool.definition.is_composite]
        without += offered(parts.test, Library(primitives))
    print("evolved library", dict(with_them))
    print("primitives alone", dict(without))


if __name__ == "__main__":
    main()
