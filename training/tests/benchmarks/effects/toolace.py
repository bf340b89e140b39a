"""What ToolACE-R's selection by difficulty brings, beside all samples and a random choice.

For each seed: adapters are fine-tuned on some questions of BFCL (``warm``), since everything is as
difficult as can be for a policy that makes no call. The difficulty of other questions is estimated
with four attempts each, and from the same warm weights the policy is fine-tuned on

* ``selected``: those with 0 < D < 0.9 (ToolACE-R, section 3.2),
* ``random``: as many, drawn from all, so that both take the same optimiser steps,
* ``all``, which takes more steps,
* ``selected-refine`` and ``random-refine``: the same choices among questions and self-refine
  samples together.

Each is asked held-out questions; those that learned to refine, and the warm one, once more with
adaptive refinement (Algorithm 1)::

    python tests/benchmarks/effects/toolace.py --output toolace --seeds 1 2 3 --summary

A finished part is kept and not done again, so that a long series may be broken off.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from bfcl import CATEGORIES, COARSE, EXAMPLES, asked, held_out, keep, kept
from intervals import gain, of_each_seed
from pydantic import TypeAdapter

from agentkit._waiting import wait_for
from agentkit.episodes import RefineMode
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit_training.config.jobs import SftConfig, ToolAceSection
from agentkit_training.config.reading import parse_config
from agentkit_training.difficulty import Difficulties, TaskDifficulty, estimate_difficulty
from agentkit_training.gold import GoldAnswer, gold_answers
from agentkit_training.policy.lora import load_adapter, save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.refine_samples import RefineSamples, refine_samples
from agentkit_training.selection import Strategy, select
from agentkit_training.sft.examples import Examples, make_examples
from agentkit_training.sft.settings import SftReport
from agentkit_training.sft.training import sft
from agentkit_training.tasks.loading import load_tasks_for_training

VARIANTS: dict[str, tuple[Strategy, bool]] = {
    "selected": ("selected", False),
    "random": ("random", False),
    "all": ("all", False),
    "selected-refine": ("selected", True),
    "random-refine": ("random", True),
}
WAYS: dict[str, tuple[RefineMode, ...]] = {
    "warm": ("none", "adaptive"),
    "selected": ("none",),
    "random": ("none",),
    "all": ("none",),
    "selected-refine": ("none", "adaptive"),
    "random-refine": ("none", "adaptive"),
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
_ESTIMATES = TypeAdapter(tuple[TaskDifficulty, ...])


def config_of(seed: int, changes: list[str]) -> SftConfig:
    """The example's configuration with a rate for adapters, and samples of a seed."""
    text = (EXAMPLES / "toolace.yaml").read_text(encoding="utf-8")
    own = [f"tasks.seed={seed}", f"policy.lora.seed={seed}", f"sft.seed={seed}"]
    smaller = [CATEGORIES, COARSE, "tasks.train=283", "tasks.test=400", "toolace.attempts=4"]
    rate = "sft.optimizer.learning_rate=5.0e-4"
    return parse_config(text, SftConfig, changes=[*own, *smaller, rate, *changes])


@dataclass(kw_only=True)
class Seed:
    """What the parts of one seed have in common.

    Attributes:
        number: The seed.
        output: Where parts are kept.
        config: How to train and to ask.
        warm: The questions of the warming up.
        pool: Those that are chosen from.
        test: Those that are asked.
    """

    number: int
    output: Path
    config: SftConfig
    warm: Benchmark
    pool: Benchmark
    test: Benchmark

    @property
    def rounds(self) -> ToolAceSection:
        """The section of ToolACE-R."""
        assert self.config.toolace is not None  # the example has one
        return self.config.toolace

    @property
    def asking(self) -> EvaluationSettings:
        """How questions are asked, once."""
        return self.config.asking.settings()

    def file(self, name: str) -> Path:
        """Where a part is kept."""
        return self.output / f"{self.number}-{name}.json"

    def policy(self) -> Policy:
        """The policy as it was warmed up; it is, if it was not yet."""
        folder = self.output / f"{self.number}-warm"
        base = replace(self.config.policy, lora=None).load(seed=self.number)
        if folder.exists():
            return load_adapter(base, folder)
        policy = self.config.policy.load(seed=self.number)
        report = self.tune(policy, self.examples(policy, self.warm))
        save_adapter(policy, folder)
        self.ask(policy, "warm", report)
        return policy

    def examples(
        self, policy: Policy, tasks: Benchmark, answers: dict[str, GoldAnswer] | None = None
    ) -> Examples:
        """What is learned of tasks."""
        return wait_for(
            make_examples(
                policy,
                tasks,
                gold_answers(tasks).answers if answers is None else answers,
                prompting=self.config.policy.prompting(),
                settings=self.asking,
                max_tokens=self.config.sft.max_tokens,
            )
        )

    def tune(self, policy: Policy, examples: Examples) -> SftReport:
        """Fine-tune."""
        return sft(
            policy, examples.rows, self.config.sft, listen=lambda step: print(step, flush=True)
        )

    def ask(self, policy: Policy, variant: str, report: SftReport) -> None:
        """Ask the held-out questions, in each way that is wanted of the variant."""
        model = self.config.policy.model(policy)
        facts = {"examples": report.examples, "steps": len(report.steps)}
        for way in WAYS[variant]:
            answers = asked(model, self.test, replace(self.asking, refine=way))
            keep(self.file(f"{variant}-{way}"), answers, **facts)
            print(self.number, variant, way, answers.right, dict(answers.labels), facts, flush=True)

    def estimate(
        self, policy: Policy, name: str, tasks: Benchmark, answers: dict[str, GoldAnswer]
    ) -> Difficulties:
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
                    settings=self.asking,
                )
            )
            print(self.number, "difficulty of", name, found.histogram(), flush=True)
            file.write_bytes(_ESTIMATES.dump_json(found.tasks))
        return Difficulties(tasks=_ESTIMATES.validate_json(file.read_bytes()))

    def run(self, variant: str) -> None:
        """Choose, fine-tune from the warm weights, and ask."""
        if self.file(f"{variant}-{WAYS[variant][-1]}").exists():
            return
        strategy, refines = VARIANTS[variant]
        policy = self.policy()
        gold = dict(gold_answers(self.pool).answers)
        estimates = self.estimate(policy, "direct", self.pool, gold)
        refined = RefineSamples(benchmark=self.pool)
        if refines:
            refined = refine_samples(self.pool, gold, estimates.tasks)
            both = dict(refined.answers)
            estimates += self.estimate(policy, "refine", refined.benchmark, both)
        wanted = replace(self.rounds.selection, strategy=strategy, seed=self.number)
        taken = frozenset(select(estimates.tasks, wanted).taken)
        examples = Examples()
        for tasks, answers in ((self.pool, gold), (refined.benchmark, refined.answers)):
            chosen = {name: one for name, one in answers.items() if name in taken}
            examples += self.examples(policy, tasks, chosen)
        self.ask(policy, variant, self.tune(policy, examples))


def seed_of(number: int, output: Path, given: argparse.Namespace) -> Seed:
    """The questions of a seed."""
    config = config_of(number, given.changes)
    parts = load_tasks_for_training(config.tasks)
    tasks = list(parts.train.tasks)
    random.Random(number).shuffle(tasks)
    warm, pool = tasks[: given.warm], tasks[given.warm : given.warm + given.pool]
    return Seed(
        number=number,
        output=output,
        config=config,
        warm=replace(parts.train, tasks=tuple(warm)),
        pool=replace(parts.train, tasks=tuple(pool)),
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
    found = {f"{one}-{way}": read(output, f"{one}-{way}") for one in WAYS for way in WAYS[one]}
    found = {name: one for name, one in found.items() if one[0]}
    for name, (right, steps) in found.items():
        count = sum(right.values())
        share = f"{count} of {len(right)} ({count / len(right):.1%})"
        print(f"{name:25} {share:20} by seed {of_each_seed(right)}; steps {', '.join(steps)}")
    for base, other in PAIRS:
        if base in found and other in found:
            change = gain(found[base][0], found[other][0])
            print(f"{other} against {base}: {change}; {change.won} won, {change.lost} lost")


def main() -> None:
    """Run what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--warm", type=int, default=96, help="questions of the warming up")
    parser.add_argument("--pool", type=int, default=96, help="questions to choose from")
    parser.add_argument("--questions", type=int, default=60, help="held-out questions")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for number in given.seeds:
        seed = seed_of(number, given.output, given)
        for variant in given.variants:
            seed.run(variant)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
