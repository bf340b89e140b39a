"""Whether typed retrieval offers an evolved library's composites: the prompts, without a model.

Reads the libraries that ``composites.py`` has kept, and looks at what the runtime's own retrieval
puts before a policy for each held-out question::

    python tests/benchmarks/effects/composites_retrieval.py --output composites --seeds 1 2 3
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from composites import Series, Sizes

from agentkit._waiting import wait_for
from agentkit.evaluation import EvaluationSettings, Task
from agentkit.export import read_artifact
from agentkit.library import Library
from agentkit.library.dag import expand
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit_training.coevolve.offering import with_composites
from agentkit_training.policy.tiny import tiny_policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.sft.prompting import PromptReader


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


def offered(series: Series, library: Library) -> Counter[str]:
    """Of how many prompts what is true."""
    reader = Noting()
    benchmark = with_composites(series.tasks.test, library)
    settings = EvaluationSettings(tools="retrieved", max_steps=1)
    wait_for(
        collect(reader, benchmark, library=library, attempts=1, temperature=0, settings=settings)
    )
    found: Counter[str] = Counter()
    for task in benchmark.tasks:
        found += _facts(task, reader.offers[task.request], library)
    return found


def _facts(task: Task, names: tuple[str, ...], library: Library) -> Counter[str]:
    gold = Counter(one.name for one in task.expects[0].calls)
    whole = [Counter(call.name for call in expand(library, name)) == gold for name in names]
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
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--test", type=int, default=Sizes().test)
    given = parser.parse_args()
    with_them, without = Counter[str](), Counter[str]()
    for seed in given.seeds:
        series = Series(seed=seed, sizes=Sizes(test=given.test), output=given.output)
        library = read_artifact(given.output / f"seed-{seed}" / "library.json").library
        with_them += offered(series, library)
        without += offered(series, Library([t for t in library if not t.definition.is_composite]))
    print("evolved library", dict(with_them))
    print("primitives alone", dict(without))


if __name__ == "__main__":
    main()
