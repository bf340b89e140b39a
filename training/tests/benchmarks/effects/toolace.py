"""What ToolACE-R's rounds of selection by difficulty bring, beside all samples and a random choice.

Everything is as difficult as can be for a policy that makes no call. So each seed begins with what
``bfcl_sft.py`` has trained, the warm policy, and with questions that it has not learned from. From
the same weights each variant goes through the same number of rounds; in each round the policy of
that moment says how difficult the questions are, and is fine-tuned on

* ``selected``: those with 0 < D < 0.9 (ToolACE-R, section 3.2),
* ``random``: as many, drawn from all,
* ``all``, which takes more steps,
* ``selected-refine`` and ``random-refine``: the same choices among questions and self-refine
  samples together.

After each round it is asked the held-out questions; those that learned to refine, and the warm one,
at the end once more with adaptive refinement (Algorithm 1)::

    python tests/benchmarks/effects/bfcl_sft.py --output bfcl-sft --seeds 1 2 3 --ways free
    python tests/benchmarks/effects/toolace.py --output toolace --warm bfcl-sft --seeds 1 2 3 \
--summary

A finished variant is kept and not done again. Seeds and variants may run as processes of their own;
``--summary`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from bfcl import EXAMPLES, asked, held_out, keep, kept, of_seed
from intervals import gain, of_each_seed

from agentkit._waiting import wait_for
from agentkit.episodes import RefineMode
from agentkit.evaluation import Benchmark, Task
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.fine_tuning.examples import make_examples
from agentkit_training.policy.lora import load_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.toolace.difficulty import gold_answers
from agentkit_training.toolace.records import Strategy, ToolAceSection, ToolAceSettings
from agentkit_training.toolace.rounds import Rounds

_WARM = "warm"
VARIANTS: dict[str, tuple[Strategy, bool]] = {
    "selected": ("selected", False),
    "random": ("random", False),
    "all": ("all", False),
    "selected-refine": ("selected", True),
    "random-refine": ("random", True),
}
PAIRS = (
    ("warm", "selected"),
    ("warm", "random"),
    ("warm", "all"),
    ("random", "selected"),
    ("all", "selected"),
    ("random-refine", "selected-refine"),
    ("selected", "selected-refine"),
    ("warm", "warm-adaptive"),
    ("selected-refine", "selected-refine-adaptive"),
    ("random-refine", "random-refine-adaptive"),
    ("random-refine-adaptive", "selected-refine-adaptive"),
)
LONGEST = 512
VALIDATION = 16


def config_of(seed: int, changes: list[str]) -> SftConfig:
    """The example's configuration with smaller batches, so that there are more steps, and a seed's."""
    text = (EXAMPLES / "toolace.yaml").read_text(encoding="utf-8")
    own = [
        'tasks.categories=["multiple", "live_simple", "live_multiple"]',
        "tasks.train=null",
        "toolace.attempts=4",
        "sft.optimizer.learning_rate=3.0e-4",
        "sft.batch_size=4",
    ]
    return parse_config(text, SftConfig, changes=[*of_seed(seed), *own, *changes])


@dataclass(kw_only=True)
class Seed:
    """What the variants of one seed have in common.

    Attributes:
        number: The seed.
        output: Where parts are kept.
        warm: Where ``bfcl_sft.py`` has kept its parts.
        config: How to train and to ask.
        size: How many questions are chosen from.
        train: All that may be learned from.
        test: The questions that are asked.
    """

    number: int
    output: Path
    warm: Path
    config: SftConfig
    size: int
    train: Benchmark
    test: Benchmark

    def run(self, variant: str) -> None:
        """Go through the rounds from the warm weights, and ask after each."""
        if self.file(f"{variant}-adaptive" if _refines(variant) else variant).exists():
            return
        base = replace(self.config.policy, lora=None).load(seed=self.number)
        policy = load_adapter(base, self.warm / f"adapter-{self.number}")
        steps = 0
        if variant != _WARM:
            rounds, most = self.rounds(policy, variant), self.section.rounds
            for number in range(1, most + 1):
                record = wait_for(rounds.run(number, 0.0, None))
                steps += record.steps
                taken = Counter(one.excluded or "taken" for one in record.samples)
                part = variant if number == most else f"{variant}-round{number}"
                self.ask(policy, part, "none", steps=steps, samples=taken)
        else:
            self.ask(policy, _WARM, "none", steps=0)
        if _refines(variant):
            self.ask(policy, f"{variant}-adaptive", "adaptive", steps=steps)

    @property
    def section(self) -> ToolAceSection:
        """The section of ToolACE-R."""
        assert self.config.toolace is not None  # the example has one
        return self.config.toolace

    def file(self, part: str) -> Path:
        """Where a part is kept."""
        return self.output / f"{self.number}-{part}.json"

    def ask(self, policy: Policy, part: str, way: RefineMode, **facts: object) -> None:
        """Ask the held-out questions, and keep what was answered."""
        settings = replace(self.config.asking.settings(), refine=way)
        answers = asked(self.config.policy.model(policy), self.test, settings)
        keep(self.file(part), answers, **facts)
        print(self.number, part, answers.right, "of", len(answers.passed), facts, flush=True)

    def rounds(self, policy: Policy, variant: str) -> Rounds:
        """The product's own rounds, on questions that the warm policy has not learned from."""
        section, config = self.section, self.config
        strategy, refines = VARIANTS[variant]
        selection = replace(section.selection, strategy=strategy, seed=self.number)
        chosen = {one.name: getattr(section, one.name) for one in fields(ToolAceSection)}
        chosen |= {"selection": selection, "refines": refines}
        settings = ToolAceSettings(
            **chosen,
            prompting=config.policy.prompting(),
            answer_tokens=config.policy.answer_tokens,
            batch_size=config.policy.batch_size,
            evaluation=config.asking.settings(),
            sft=config.sft,
            seed=self.number,
        )
        tasks = self.fitting(policy)
        train = replace(self.train, tasks=tasks[VALIDATION:][: self.size])
        return Rounds(
            policy=policy,
            train=train,
            validation=replace(self.train, tasks=tasks[:VALIDATION]),
            settings=settings,
        )

    def fitting(self, policy: Policy) -> tuple[Task, ...]:
        """Questions that are new to the warm policy and short enough, in the order of the seed."""
        found = wait_for(
            make_examples(
                policy,
                self.train,
                gold_answers(self.train).answers,
                prompting=self.config.policy.prompting(),
                settings=self.config.asking.settings(),
                max_tokens=LONGEST,
            )
        )
        record = json.loads((self.warm / f"free-{self.number}-trained.json").read_text("utf-8"))
        wanted = {one.task_id for one in found.rows} - set(record["taught"])
        tasks = [task for task in self.train.tasks if task.task_id in wanted]
        random.Random(self.number).shuffle(tasks)
        return tuple(tasks)


def _refines(variant: str) -> bool:
    """Whether a variant is asked with adaptive refinement, too."""
    return variant == _WARM or VARIANTS[variant][1]


def seed_of(number: int, given: argparse.Namespace) -> Seed:
    """The questions of a seed."""
    config = config_of(number, given.changes)
    parts = load_tasks_for_training(config.tasks)
    return Seed(
        number=number,
        output=given.output,
        warm=given.warm,
        config=config,
        size=given.pool,
        train=parts.train,
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
    parts = sorted({file.stem.partition("-")[2] for file in output.glob("*.json")})
    found = {part: read(output, part) for part in parts}
    for part, (right, steps) in found.items():
        count = sum(right.values())
        share = f"{count} of {len(right)} ({count / len(right):.1%})"
        print(f"{part:25} {share:20} by seed {of_each_seed(right)}; steps {', '.join(steps)}")
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
    parser.add_argument("--pool", type=int, default=352, help="questions to choose from")
    parser.add_argument("--questions", type=int, default=400, help="held-out questions")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for number in given.seeds:
        seed = seed_of(number, given)
        for variant in given.variants:
            seed.run(variant)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
