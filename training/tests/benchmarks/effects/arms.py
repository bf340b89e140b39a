"""What rewards bring to a fine-tuned policy, and what goes with them: diagnosis, a library that learns.

For each seed the trainings begin with the same fine-tuned adapter and go through the same tasks:

* ``vanilla``: GRPO, the library stays;
* ``interface``: training prompts say what the failure profile asks for (SEAL, section 3.3);
* ``weights``: advantages are weighted by diagnosis, as SEAL has them (Eq. 10 to 12);
* ``both``;
* ``coevolved``: GRPO while the library learns from refusals; ``shuffled``: each tool from another
  one's; ``library``: the library alone learns, the policy stays.

Then each policy, and the adapter that all began with, answers held-out questions greedily, without
the interface, under the texts that its library came to::

    python tests/benchmarks/effects/arms.py --output seal --seeds 1 2 3 --summary
    python tests/benchmarks/effects/arms.py --config examples/one_gpu.yaml --output seal-gpu \
--seeds 1 --set policy.device=cuda

With ``--worlds first told swapped`` it answers the same questions under texts that tell the demands,
and in the swapped world too, under texts that tell those there: who has learned to read is right, who
knows the first world by heart is wrong. ``rules.json`` in the output has the tools under texts that
tell what the first world demands, for ``--set library=`` or, in the fine-tuning alone, ``--warm-set
library=``; in ``enums.json`` only those with lists of values tell theirs. ``mending.jsonl`` and
``mending.json`` are questions and texts of ``mending.py``, for a fine-tuning that teaches to mend.

A finished part is kept and not done again, a broken one gone on with from its newest checkpoint
(``--set watch.checkpoint_every=2``). Seeds and arms may run as processes of their own;
``--summary`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import torch
from intervals import Right, gain, of_each_seed
from mending import write_mending

from agentkit._waiting import wait_for
from agentkit.interop.export import artifact_of, write_artifact
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.export.handover import library_of as library_at
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.running import HANDOVER, LIBRARY, POLICY
from agentkit_training.rollout.collecting import collect
from agentkit_training.tasks.hidden_constraints.family import library_of
from agentkit_training.tasks.hidden_constraints.tools import TOOLS, World
from agentkit_training.tasks.loading import load_tasks_for_training

_WARM, _VANILLA = "warm", "vanilla"
_RAW = ("coevolution.weighting=true", "weighting.normalised=false")
ARMS: dict[str, tuple[str, ...]] = {
    _VANILLA: (),
    "interface": ("coevolution.interface=true",),
    "weights": _RAW,
    "both": ("coevolution.interface=true", *_RAW),
}
"""SEAL's arms. ``vanilla`` has the learning rate of the others: a factor that weights have in every
step is no gain in rate, since AdamW divides it out."""

LEARNING: dict[str, tuple[str, ...]] = {
    "coevolved": ("coevolution.evidence=true",),
    "shuffled": ("coevolution.evidence=true", "coevolution.shuffled=true"),
    "library": ("coevolution.evidence=true", "frozen=true"),
}
"""Those whose library learns; the others' stays."""

PAIRS = (
    (_WARM, _VANILLA),
    (_VANILLA, "interface"),
    (_VANILLA, "weights"),
    (_VANILLA, "both"),
    (_VANILLA, "coevolved"),
    ("shuffled", "coevolved"),
    ("library", "coevolved"),
)
SMALL = (
    "coevolution.evidence=false",
    "coevolution.steps=8",
    "coevolution.group_size=6",
    "tasks.test=40",
)
"""What the small series on a CPU has other than the demo's configuration."""


Place: TypeAlias = Literal["first", "told", "swapped"]
"""Where held-out questions are asked: in the first world, under the texts that a library came to; there
under texts that tell the demands; in the swapped world under texts that tell those."""

PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True, kw_only=True)
class Series:
    """The parts of one seed.

    Attributes:
        seed: Of tasks, samples and orders.
        output: Where the parts are kept.
        text: The configuration.
        changes: Keys of it that are other than in the file.
        warm_changes: Those of the fine-tuning alone.
        worlds: Where held-out questions are asked, see ``PLACES``.
    """

    seed: int
    output: Path
    text: str
    changes: Sequence[str]
    warm_changes: Sequence[str]
    worlds: Sequence[Place]

    def warm(self) -> None:
        """The fine-tuned adapter that all arms begin with."""
        self._train(_WARM, self._config("coevolution.steps=0", *self.warm_changes))

    def arm(self, name: str) -> None:
        """One arm, unless it is there."""
        begun = f"policy.adapter={_adapter(self._folder(_WARM))}"
        given = ["policy.lora=null", begun, "cold_start=null"]
        given += (ARMS | LEARNING)[name]
        self._train(name, self._config(*given))

    def ask(self, name: str, place: Place) -> None:
        """Which held-out questions a policy answers rightly, unless that is known."""
        target = self.output / f"{self.seed}-{_asked(name, place)}.json"
        if target.exists():
            return
        adapter = f"policy.adapter={_adapter(self._folder(name))}"
        world: World = "swapped" if place == "swapped" else "first"
        there = () if world == "first" else (f"tasks.world={world}",)
        config = self._config("policy.lora=null", adapter, "cold_start=null", *there)
        learned = _left(self._folder(name), LIBRARY)
        told = library_at(learned if learned.exists() else config.library)
        rollouts = wait_for(
            collect(
                config.policy.model(config.policy.load(seed=self.seed)),
                load_tasks_for_training(config.tasks).test,
                library=told if place == "first" else library_of("rules", world),
                attempts=1,
                temperature=0,
                settings=config.asking.settings(),
            )
        )
        passed = {one.task_id: bool(one.passed and not one.fault) for one in rollouts}
        target.write_text(json.dumps(passed, indent=1), encoding="utf-8")
        print(self.seed, target.stem, f"{sum(passed.values())} of {len(passed)}", flush=True)

    def _config(self, *more: str) -> CoevolveConfig:
        own = [f"{part}.seed={self.seed}" for part in ("tasks", "coevolution", "cold_start")]
        return parse_config(self.text, CoevolveConfig, changes=[*own, *self.changes, *more])

    def _folder(self, name: str) -> Path:
        return self.output / str(self.seed) / name

    def _train(self, name: str, config: CoevolveConfig) -> None:
        folder = self._folder(name)
        if not (folder / "report.html").exists():  # what a run writes last
            unmeasured = replace(config, tasks=replace(config.tasks, validation=0, test=0))
            coevolve_job(
                unmeasured,
                folder,
                resumes=(folder / "run.json").exists(),
                listen=lambda one: print(self.seed, name, one, flush=True),
            )
        for place in self.worlds:
            self.ask(name, place)


def _left(run: Path, name: str) -> Path:
    """Where a run left something: beside what was handed over of GGUF weights, or in its folder."""
    handed = run / HANDOVER
    return handed / name if handed.exists() else run / name


def _adapter(run: Path) -> Path:
    """Where a run left its adapter in PEFT's form."""
    return _left(run, "peft" if (run / HANDOVER).exists() else POLICY)


def _asked(name: str, place: Place) -> str:
    return name if place == "first" else f"{name}-{place}"


def summary(output: Path) -> None:
    """Right answers of each policy, and what is compared."""
    for place in PLACES:
        found: dict[str, Right] = {}
        for name in (_WARM, *ARMS, *LEARNING):
            right = {
                (int(file.stem.partition("-")[0]), task): ok
                for file in sorted(output.glob(f"*-{_asked(name, place)}.json"))
                for task, ok in json.loads(file.read_text(encoding="utf-8")).items()
            }
            if right:
                found[name] = right
                count = sum(right.values())
                share = f"{count} of {len(right)} ({count / len(right):.1%})"
                print(f"{place:8} {name:10} {share:20} by seed {of_each_seed(right)}")
        for base, other in PAIRS:
            if base in found and other in found:
                print(f"{place:8} {other} against {base}: {gain(found[base], found[other])}")


def main() -> None:
    """Train and ask what is wanted, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--config", type=Path, help="the demo's, made smaller, where none is given")
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--arms", nargs="*", choices=[*ARMS, *LEARNING], default=list(ARMS))
    parser.add_argument("--worlds", nargs="*", choices=PLACES, default=["first"])
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--warm-set", action="append", default=[], help="in fine-tuning alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    demo = resources.files("agentkit_training").joinpath("demo.yaml")
    text = (given.config or demo).read_text(encoding="utf-8")
    changes = [*(() if given.config else SMALL), *given.changes]
    given.output.mkdir(parents=True, exist_ok=True)
    lists = [name for name, tool in TOOLS.items() if tool.kind == "enum"]
    some = library_of("fixed").with_tools(library_of("rules", names=lists))
    for name, library in (("rules", library_of("rules")), ("enums", some)):
        write_artifact(artifact_of(library), given.output / f"{name}.json")
    write_mending(given.output)
    for seed in given.seeds:
        series = Series(
            seed=seed,
            output=given.output,
            text=text,
            changes=changes,
            warm_changes=given.warm_set,
            worlds=given.worlds,
        )
        series.warm()
        for arm in given.arms:
            series.arm(arm)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
