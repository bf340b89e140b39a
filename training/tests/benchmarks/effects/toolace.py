"""What ToolACE-R's rounds of selection by difficulty bring, beside a random choice and all samples.

The tools' texts tell what they demand (``term must be one of 36, 48, 60``), so that who reads is
right. Each seed begins with the fine-tuned adapter of ``arms.py``, which learned other tools. From
there each variant goes through the same number of rounds; in each the policy of that moment says
how difficult the questions are, and is fine-tuned on

* ``selected``: those with 0 < D < 0.9 (ToolACE-R, section 3.2),
* ``random``: as many, drawn from all,
* ``all``, which takes more steps,
* ``selected-refine`` and ``random-refine``: the same choices among questions and self-refine
  samples together.

At the end it is asked held-out questions, greedily, and once more with adaptive refinement
(Algorithm 1), as is the adapter that all began with::

    python arms.py --config coevolution.yaml --output told --seeds 1 2 3 --arms --worlds told \
--set policy.format=json --set policy.answer_tokens=48 --set tasks.test=200 \
--warm-set library=told/rules.json --warm-set tasks.train=192 \
--warm-set 'tasks.kinds=[form,condition,requires]'
    python toolace.py --output toolace --warm told --seeds 1 2 3 --summary

A finished variant is kept and not done again. Seeds and variants may run as processes of their own;
``--summary`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from bfcl import EXAMPLES, answers_of, keep, kept
from intervals import gain, of_each_seed

from agentkit._waiting import wait_for
from agentkit.episodes import RefineMode
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.evaluate import evaluate_job
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.hidden_constraints.family import library_of
from agentkit_training.tasks.loading import load_tasks_for_training
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
    ("selected", "selected-adaptive"),
    ("random", "random-adaptive"),
    ("selected-refine", "selected-refine-adaptive"),
    ("random-refine", "random-refine-adaptive"),
    ("random-refine-adaptive", "selected-refine-adaptive"),
)
LIBRARY = library_of("rules")
"""The tools under texts that tell what they demand."""


def config_of(seed: int, warm: Path, changes: list[str]) -> SftConfig:
    """The example's configuration on other tasks, with small batches, so that there are more steps."""
    text = (EXAMPLES / "toolace.yaml").read_text(encoding="utf-8")
    own = [
        "tasks={source: hidden-constraints, kinds: [enum, unit]}",
        "tasks.train=112",
        "tasks.validation=14",
        "tasks.test=200",
        f"tasks.seed={seed}",
        f"sft.seed={seed}",
        "policy.lora=null",
        f"policy.adapter={warm / str(seed) / _WARM / 'policy'}",
        "policy.answer_tokens=48",
        "toolace.attempts=4",
        "sft.optimizer.learning_rate=3.0e-4",
        "sft.batch_size=2",
    ]
    return parse_config(text, SftConfig, changes=[*own, *changes])


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What the variants of one seed have in common.

    Attributes:
        number: The seed.
        output: Where parts are kept.
        config: What to begin with, how to train and to ask.
    """

    number: int
    output: Path
    config: SftConfig

    def run(self, variant: str) -> None:
        """Go through the rounds from the warm weights, and ask at the end."""
        if self.file(f"{variant}-adaptive").exists():
            return
        policy = self.config.policy.load(seed=self.number)
        records: list[dict[str, object]] = []
        if variant != _WARM:
            records = self.rounds(policy, variant)
            save_adapter(policy, self.output / str(self.number) / variant)
        self.ask(policy, variant, "none", rounds=records)
        self.ask(policy, f"{variant}-adaptive", "adaptive", rounds=records)

    def file(self, part: str) -> Path:
        """Where a part is kept."""
        return self.output / f"{self.number}-{part}.json"

    def ask(self, policy: Policy, part: str, way: RefineMode, **facts: object) -> None:
        """Ask the held-out questions, and keep what was answered."""
        found = evaluate_job(
            self.config.policy.model(policy),
            load_tasks_for_training(self.config.tasks).test,
            replace(self.config.asking.settings(), refine=way),
            library=LIBRARY,
        )
        answers = answers_of(found)
        keep(self.file(part), answers, **facts)
        print(self.number, part, answers.right, "of", len(answers.passed), flush=True)

    def rounds(self, policy: Policy, variant: str) -> list[dict[str, object]]:
        """The product's own rounds; of each, its optimiser steps and what became of the samples."""
        section, config = self.config.toolace, self.config
        assert section is not None  # the example has one
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
        parts = load_tasks_for_training(config.tasks)
        rounds = Rounds(
            policy=policy,
            train=parts.train,
            validation=parts.validation,
            settings=settings,
            library=LIBRARY,
        )
        done: list[dict[str, object]] = []
        for number in range(1, section.rounds + 1):
            record = wait_for(rounds.run(number, 0.0, None))
            samples = Counter(one.excluded or "taken" for one in record.samples)
            done.append({"steps": record.steps, "samples": samples, "after": record.accuracy_after})
            print(self.number, variant, number, done[-1], flush=True)
        return done


def read(output: Path, part: str) -> tuple[dict[tuple[int, str], bool], list[str]]:
    """What a part found in all seeds, and the steps that each seed took."""
    right: dict[tuple[int, str], bool] = {}
    steps: list[str] = []
    for file in sorted(output.glob(f"*-{part}.json")):
        seed = int(file.stem.split("-")[0])
        if file.stem == f"{seed}-{part}":
            right.update({(seed, task): ok for task, ok in kept(file).passed.items()})
            rounds = json.loads(file.read_text(encoding="utf-8"))["rounds"]
            steps.append(str(sum(one["steps"] for one in rounds)))
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
    parser.add_argument("--warm", type=Path, required=True, help="the output of arms.py")
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--variants", nargs="*", default=[_WARM, *VARIANTS])
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for number in given.seeds:
        config = config_of(number, given.warm, given.changes)
        for variant in given.variants:
            Seed(number=number, output=given.output, config=config).run(variant)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
