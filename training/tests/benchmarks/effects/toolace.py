"""What ToolACE-R's selection by difficulty brings, beside all samples and a random choice.

Everything is as difficult as can be for a policy that makes no call. So each seed begins with what
``bfcl_sft.py`` has trained, the warm policy, and with questions that it has not learned from. Their
difficulty is estimated with four attempts each, and from the same weights the policy is fine-tuned
on

* ``selected``: those with 0 < D < 0.9 (ToolACE-R, section 3.2),
* ``random``: as many, drawn from all, so that both take the same optimiser steps,
* ``all``, which takes more steps,
* ``selected-refine`` and ``random-refine``: the same choices among questions and self-refine
  samples together.

Each is asked the held-out questions of its seed; those that learned to refine, and the warm one,
once more with adaptive refinement (Algorithm 1)::

    python tests/benchmarks/effects/bfcl_sft.py --output bfcl-sft --seeds 1 2 3 --ways free
    python tests/benchmarks/effects/toolace.py --output toolace --warm bfcl-sft --seeds 1 2 3 \
--summary

A finished part is kept and not done again, so that a long series may be broken off.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import bfcl_sft
import torch
from bfcl import EXAMPLES, asked, held_out, keep, kept, of_seed
from intervals import gain, of_each_seed
from pydantic import TypeAdapter

from agentkit._waiting import wait_for
from agentkit.episodes import RefineMode
from agentkit.evaluation import Benchmark
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.fine_tuning.examples import Examples, make_examples
from agentkit_training.fine_tuning.training import sft
from agentkit_training.policy.lora import load_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.toolace.difficulty import (
    Difficulties,
    GoldAnswer,
    TaskDifficulty,
    estimate_difficulty,
    gold_answers,
)
from agentkit_training.toolace.records import Strategy, ToolAceSection, select
from agentkit_training.toolace.rounds import RefineSamples, refine_samples

Gold: TypeAlias = Mapping[str, GoldAnswer]
_WARM = "warm"
VARIANTS: dict[str, tuple[Strategy, bool]] = {
    "selected": ("selected", False),
    "random": ("random", False),
    "all": ("all", False),
    "selected-refine": ("selected", True),
    "random-refine": ("random", True),
}
PAIRS = (
    ("warm-none", "selected-none"),
    ("warm-none", "random-none"),
    ("warm-none", "all-none"),
    ("random-none", "selected-none"),
    ("all-none", "selected-none"),
    ("random-refine-none", "selected-refine-none"),
    ("selected-none", "selected-refine-none"),
    ("warm-none", "warm-adaptive"),
    ("selected-refine-none", "selected-refine-adaptive"),
    ("random-refine-none", "random-refine-adaptive"),
    ("random-refine-adaptive", "selected-refine-adaptive"),
)
LONGEST = 384
_ESTIMATES = TypeAdapter(tuple[TaskDifficulty, ...])


def config_of(seed: int, changes: list[str]) -> SftConfig:
    """The example's configuration with the rate of ``sft.yaml`` and samples of a seed."""
    text = (EXAMPLES / "toolace.yaml").read_text(encoding="utf-8")
    own = ["tasks.train=400", "toolace.attempts=4", "sft.optimizer.learning_rate=5.0e-4"]
    return parse_config(text, SftConfig, changes=[*of_seed(seed), *own, *changes])


def ways(variant: str) -> tuple[RefineMode, ...]:
    """How a variant is asked."""
    refines = variant == _WARM or VARIANTS[variant][1]
    return ("none", "adaptive") if refines else ("none",)


@dataclass(kw_only=True)
class Seed:
    """What the variants of one seed have in common.

    Attributes:
        number: The seed.
        output: Where parts are kept.
        warm: Where ``bfcl_sft.py`` has kept its parts.
        config: How to train and to ask.
        others: Questions that the warm policy has not learned from.
        size: How many of these are chosen from.
        test: The questions that are asked.
    """

    number: int
    output: Path
    warm: Path
    config: SftConfig
    others: Benchmark
    size: int
    test: Benchmark

    @property
    def rounds(self) -> ToolAceSection:
        """The section of ToolACE-R."""
        assert self.config.toolace is not None  # the example has one
        return self.config.toolace

    def file(self, name: str) -> Path:
        """Where a part is kept."""
        return self.output / f"{self.number}-{name}.json"

    def policy(self) -> Policy:
        """The warm policy."""
        base = replace(self.config.policy, lora=None).load(seed=self.number)
        return load_adapter(base, self.warm / f"handover-{self.number}" / "peft")

    def examples(self, policy: Policy, tasks: Benchmark, answers: Gold, most: int) -> Examples:
        """What is learned of tasks, as far as it has at most so many tokens."""
        return wait_for(
            make_examples(
                policy,
                tasks,
                answers,
                prompting=self.config.policy.prompting(),
                settings=self.config.asking.settings(),
                max_tokens=most,
            )
        )

    def pool(self, policy: Policy) -> Benchmark:
        """What is chosen from: questions that are short enough, in the order of the seed."""
        answers = gold_answers(self.others).answers
        fitting = {one.task_id for one in self.examples(policy, self.others, answers, LONGEST).rows}
        tasks = [task for task in self.others.tasks if task.task_id in fitting]
        random.Random(self.number).shuffle(tasks)
        return replace(self.others, tasks=tuple(tasks[: self.size]))

    def estimate(self, policy: Policy, name: str, tasks: Benchmark, answers: Gold) -> Difficulties:
        """The difficulty of tasks, estimated once."""
        file = self.file(f"difficulty-{name}")
        if not file.exists():
            found = wait_for(
                estimate_difficulty(
                    self.config.policy.model(policy),
                    tasks,
                    answers,
                    attempts=self.rounds.attempts,
                    temperature=self.rounds.temperature,
                    seed=self.number,
                    settings=self.config.asking.settings(),
                )
            )
            print(self.number, "difficulty of", name, len(found.tasks), "tasks", flush=True)
            file.write_bytes(_ESTIMATES.dump_json(found.tasks))
        return Difficulties(tasks=_ESTIMATES.validate_json(file.read_bytes()))

    def chosen(self, policy: Policy, variant: str) -> Examples:
        """The examples of a variant, as a round of ToolACE-R makes them."""
        strategy, refines = VARIANTS[variant]
        pool = self.pool(policy)
        gold = gold_answers(pool).answers
        estimates = self.estimate(policy, "direct", pool, gold)
        refined = RefineSamples(benchmark=pool)
        if refines:
            refined = refine_samples(pool, gold, estimates.tasks)
            estimates += self.estimate(policy, "refine", refined.benchmark, refined.answers)
        wanted = replace(self.rounds.selection, strategy=strategy, seed=self.number)
        taken = frozenset(select(estimates.tasks, wanted).taken)
        found = Examples()
        for tasks, answers in ((pool, gold), (refined.benchmark, refined.answers)):
            own = {name: one for name, one in answers.items() if name in taken}
            found += self.examples(policy, tasks, own, self.config.sft.max_tokens)
        return found

    def take_over(self) -> None:
        """Keep what the warm policy has answered already, where it was asked the same."""
        file = self.warm / f"free-{self.number}-trained.json"
        asked_before = kept(file) if file.exists() else None
        if asked_before and asked_before.passed.keys() == {one.task_id for one in self.test.tasks}:
            keep(self.file(f"{_WARM}-none"), asked_before, examples=0, steps=0)

    def run(self, variant: str) -> None:
        """Choose, fine-tune from the warm weights, and ask."""
        open_ways = [way for way in ways(variant) if not self.file(f"{variant}-{way}").exists()]
        if not open_ways:
            return
        policy = self.policy()
        examples, steps = 0, 0
        if variant != _WARM:
            rows = self.chosen(policy, variant).rows
            report = sft(policy, rows, self.config.sft, listen=lambda s: print(s, flush=True))
            examples, steps = report.examples, len(report.steps)
        for way in open_ways:
            settings = replace(self.config.asking.settings(), refine=way)
            answers = asked(self.config.policy.model(policy), self.test, settings)
            keep(self.file(f"{variant}-{way}"), answers, examples=examples, steps=steps)
            said = f"{answers.right} of {len(answers.passed)} {dict(answers.labels)}"
            print(f"{self.number} {variant} {way}: {said}; {steps} steps", flush=True)


def seed_of(number: int, given: argparse.Namespace) -> Seed:
    """The questions of a seed."""
    config = config_of(number, given.changes)
    parts = load_tasks_for_training(config.tasks)
    taught = load_tasks_for_training(bfcl_sft.config_of(number, []).tasks).train.tasks
    known = {task.task_id for task in taught}
    others = tuple(task for task in parts.train.tasks if task.task_id not in known)
    return Seed(
        number=number,
        output=given.output,
        warm=given.warm,
        config=config,
        others=replace(parts.train, tasks=others),
        size=given.pool,
        test=held_out(parts.test, number, given.questions),
    )


def read(output: Path, part: str) -> tuple[dict[tuple[int, str], bool], list[str]]:
    """What a part found in all seeds, and the steps that each seed took."""
    right: dict[tuple[int, str], bool] = {}
    steps: list[str] = []
    for file in sorted(output.glob(f"*-{part}.json")):
        seed = int(file.stem.split("-")[0])
        if file.stem == f"{seed}-{part}":
            right.update({(seed, task): ok for task, ok in kept(file).passed.items()})
            steps.append(str(json.loads(file.read_text(encoding="utf-8"))["steps"]))
    return right, steps


def summary(output: Path) -> None:
    """Right answers of each variant, and what it brings beside the warm policy and chance."""
    names = [f"{one}-{way}" for one in (_WARM, *VARIANTS) for way in ways(one)]
    found = {name: one for name in names if (one := read(output, name))[0]}
    for name, (right, steps) in found.items():
        count = sum(right.values())
        share = f"{count} of {len(right)} ({count / len(right):.1%})"
        print(f"{name:25} {share:20} by seed {of_each_seed(right)}; steps {', '.join(steps)}")
    for base, other in PAIRS:
        if base in found and other in found:
            print(f"{other} against {base}: {gain(found[base][0], found[other][0])}")


def main() -> None:
    """Run what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--warm", type=Path, required=True, help="the output of bfcl_sft.py")
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--variants", nargs="*", default=[_WARM, *VARIANTS])
    parser.add_argument("--pool", type=int, default=96, help="questions to choose from")
    parser.add_argument("--questions", type=int, default=60, help="held-out questions")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for number in given.seeds:
        seed = seed_of(number, given)
        seed.take_over()
        for variant in given.variants:
            seed.run(variant)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
