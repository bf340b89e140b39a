"""What composites save, and what the reward for them does: CoCoDA's three stages with a small model.

For each seed the Tool Manager makes composites of gold trajectories, and three models are
fine-tuned on the same arithmetic questions: on calls of primitives, on trajectories written anew
with the composites, and on every second one so. Then each arm goes through the same steps of
reinforcement learning, from the first model or from the last::

    python tests/benchmarks/effects/composites.py --output composites --seeds 1 2 3

``none`` has no composites; ``unrewarded`` has them, and the result alone counts; ``gated`` and
``ungated`` are paid for calls saved as well (CoCoDA, section 3.3), in rollouts that passed or in
all. What is measured are the policy's own rollouts of held-out questions at temperature 0, through
the runtime's evaluation. A finished part is kept and not done again. ``--summary`` prints the
tables of what is there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import composites_summary
import torch

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.interop.export import read_artifact, write_artifact
from agentkit.library import Library
from agentkit.library.dag import depth, flat_size
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.running import coevolve
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.config.sections import PolicySection
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.fine_tuning.settings import SftSettings
from agentkit_training.fine_tuning.teaching import make_demonstrations
from agentkit_training.fine_tuning.training import sft
from agentkit_training.policy.lora import LoraSettings
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import restore_weights, save_weights
from agentkit_training.rewards import saved_calls, verdict_reward
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.samples import Rollout
from agentkit_training.tasks.arithmetic import (
    FOUR,
    RECIPES,
    Calculator,
    arithmetic,
    arithmetic_episodes,
)
from agentkit_training.tasks.splits import TaskSplits

SECTION = PolicySection(
    weights="local:smollm2-135m", lora=LoraSettings(rank=16, alpha=32), answer_tokens=64
)
ASKING = EvaluationSettings(max_steps=4)
USED = ("bill", "average")
"""Two calls each: longer ones are too hard for a model of this size and so few examples."""
ARMS = {
    "none": (0.0, True),
    "unrewarded": (0.0, True),
    "gated": (0.2, True),
    "ungated": (0.2, False),
}

SAMPLED = "sampled"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is tried; each can be given on the command line."""

    train: int = 20
    test: int = 12
    epochs: int = 2
    batch_size: int = 4
    sft_rate: float = 1e-3
    steps: int = 4
    tasks_per_step: int = 4
    group_size: int = 6
    rate: float = 2e-4


@dataclass(kw_only=True)
class Series:
    """The parts of one seed.

    Attributes:
        seed: Of questions, samples and orders.
        sizes: How much is tried.
        output: Where the parts are kept.
        tasks: The questions.
    """

    seed: int
    sizes: Sizes
    output: Path
    tasks: TaskSplits = field(init=False)

    def __post_init__(self) -> None:
        self.tasks = arithmetic(
            seed=self.seed,
            train=self.sizes.train,
            validation=0,
            test=self.sizes.test,
            recipes=[one for one in RECIPES if one.name in USED],
        )

    def cold(self) -> None:
        """Stages 1 and 2: both fine-tuned models and the library, unless they are there."""
        target = self._part("cold")
        if target.exists():
            return
        gold = {one.metadata["task"]: one for one in arithmetic_episodes(self.tasks.train)}
        policy = self._policy()
        keeper = self._keeper(policy, CoevolutionSettings(composites=True, seed=self.seed))
        notes = [str(one) for one in keeper.distil(gold.values())]
        library = keeper.library
        write_artifact(keeper.artifact(), self._file("library.json"))
        losses = [self._tuned(policy, gold, Library(), "primitives")]
        found = {"primitives": self.examined(policy, Library())}
        found["primitives, offered composites"] = self.examined(policy, library)
        told = [_told(library, tool.name) for tool in library]
        self._write("cold", found, losses=losses, library=told, notes=notes)

    def arm(self, name: str) -> None:
        """Stage 3 of one arm, unless it is there."""
        if self._part(name).exists():
            return
        coefficient, gated = ARMS[name]
        composes = name != "none"
        settings = CoevolutionSettings(
            composites=composes,
            composite_coefficient=coefficient,
            gated=gated,
            steps=self.sizes.steps,
            tasks_per_step=self.sizes.tasks_per_step,
            group_size=self.sizes.group_size,
            seed=self.seed,
        )
        policy = self._policy()
        restore_weights(policy, self._file("mixed" if composes else "primitives"))
        keeper = self._keeper(policy, settings)
        if composes:
            keeper.restore(read_artifact(self._file("library.json")))
        source = Coevolution(
            model=SECTION.model(policy),
            keeper=keeper,
            settings=settings,
            benchmark=self.tasks.train,
            asking=ASKING,
        )
        watched: list[dict[str, float]] = []
        source.reward = _Watching(source=source, into=watched)
        engine = LeanEngine(optimizer=OptimizerSettings(learning_rate=self.sizes.rate))
        coevolve(policy, source, engine)
        found = {name: self.examined(policy, source.library)}
        library = [_told(source.library, tool.name) for tool in source.library]
        steps = [one.to_record().figures for one in source.records]
        self._write(name, found, steps=steps, rollouts=watched, library=library)

    def sampled(self) -> None:
        """Groups of attempts at the held-out questions, to see what each reward would pay."""
        if self._part("sampled").exists():
            return
        policy = self._policy()
        restore_weights(policy, self._file("mixed"))
        library = read_artifact(self._file("library.json")).library
        rollouts = wait_for(
            collect(
                SECTION.model(policy),
                with_composites(self.tasks.test, library),
                library=library,
                attempts=self.sizes.group_size,
                temperature=1.0,
                seed=self.seed,
                settings=ASKING,
            )
        )
        found = [{"task": one.task_id, **counted(one, library)} for one in rollouts]
        self._write("sampled", {}, attempts=found)

    def examined(self, policy: Policy, library: Library) -> dict[str, dict[str, float]]:
        """What the policy does with the held-out questions, by question."""
        shown = with_composites(self.tasks.test, library)
        rollouts = wait_for(
            collect(
                SECTION.model(policy),
                shown,
                library=library,
                attempts=1,
                temperature=0,
                settings=ASKING,
            )
        )
        return {one.task_id: counted(one, library) for one in rollouts}

    def _policy(self) -> Policy:
        return SECTION.load(seed=self.seed)

    def _keeper(self, policy: Policy, settings: CoevolutionSettings) -> LibraryKeeper:
        return LibraryKeeper(
            settings=settings,
            benchmark=self.tasks.train,
            model=SECTION.model(policy),
            store=open_store("memory:"),
            tools=Calculator(FOUR).tools(),
        )

    def _tuned(
        self, policy: Policy, gold: Mapping[str, Episode], library: Library, name: str
    ) -> dict[str, float]:
        benchmark: Benchmark = with_composites(self.tasks.train, library)
        made = wait_for(
            make_demonstrations(
                policy,
                benchmark,
                gold,
                prompting=SECTION.prompting(),
                library=library,
                settings=ASKING,
            )
        )
        settings = SftSettings(
            optimizer=OptimizerSettings(
                learning_rate=self.sizes.sft_rate, schedule="cosine", warmup_ratio=0.1
            ),
            batch_size=self.sizes.batch_size,
            epochs=self.sizes.epochs,
            seed=self.seed,
        )
        report = sft(policy, made.rows, settings, listen=lambda one: print(name, one, flush=True))
        self._file(name).mkdir(exist_ok=True)
        save_weights(policy, self._file(name))
        return {
            "examples": len(made.rows),
            "left_out": len(made.left_out),
            "last_loss": report.steps[-1].loss,
            "seconds": sum(one.seconds for one in report.steps),
        }

    def _file(self, name: str) -> Path:
        folder = self.output / f"seed-{self.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def _part(self, name: str) -> Path:
        return self.output / f"{name}-{self.seed}.json"

    def _write(self, name: str, found: Mapping[str, Any], **more: Any) -> None:
        record = {"seed": self.seed, "part": name, "found": found, **more}
        self._part(name).write_text(json.dumps(record, indent=1))
        for who, one in found.items():
            print(self.seed, who, composites_summary.line(list(one.values())), flush=True)


@dataclass(frozen=True, kw_only=True)
class _Watching:
    """The verdict as reward, and a line for each rollout about composites in it."""

    source: Coevolution
    into: list[dict[str, float]]

    def __call__(self, rollout: Rollout) -> Mapping[str, float]:
        self.into.append(counted(rollout, self.source.library))
        return verdict_reward(rollout)


def counted(rollout: Rollout, library: Library) -> dict[str, float]:
    """Whether a rollout passed, and its calls."""
    names = [call.name for one in rollout.episodes for call in one.calls]
    known = [library.get(name) for name in names]
    return {
        "passed": float(rollout.passed and not rollout.fault),
        "calls": len(names),
        "composite_calls": sum(one is not None and one.definition.is_composite for one in known),
        "saved": saved_calls(rollout, library),
    }


def _told(library: Library, name: str) -> dict[str, Any]:
    return {"name": name, "depth": depth(library, name), "flat": flat_size(library, name)}


def main() -> None:
    """Run what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--arms", nargs="*", choices=[SAMPLED, *ARMS], default=[SAMPLED, *ARMS])
    parser.add_argument("--summary", action="store_true")
    for one in fields(Sizes):
        name = f"--{one.name.replace('_', '-')}"
        parser.add_argument(name, type=type(one.default), default=one.default)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(**{one.name: getattr(given, one.name) for one in fields(Sizes)})
    for seed in given.seeds:
        series = Series(seed=seed, sizes=sizes, output=given.output)
        series.cold()
        for arm in given.arms:
            series.sampled() if arm == SAMPLED else series.arm(arm)
    if given.summary:
        composites_summary.summary(given.output)


if __name__ == "__main__":
    main()
