"""What each half of co-evolution brings, on tools that demand what their definitions do not say.

For each seed some runs, which share tasks, samples and the fine-tuned adapter that they begin with,
and then the runtime's answers to held-out questions, with each model and each library::

    python tests/benchmarks/effects/hidden_constraints.py --output effects --seeds 1 2 3 --summary

A finished part is kept and not done again, so that a long series may be broken off. Parts of a
seed (``--parts``, in this order) and seeds may run as processes of their own; ``--summary`` prints
the tables of what is there.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path

import torch
from intervals import Right, gain, of_each_seed

from agentkit.evaluation import EvaluationReport
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse, resolve_model
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.export.handover import load_handover
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import evaluate_job
from agentkit_training.jobs.running import HANDOVER
from agentkit_training.tasks.hidden_constraints.family import library_of
from agentkit_training.tasks.hidden_constraints.tools import World
from agentkit_training.tasks.loading import load_tasks_for_training

_TUNED = ("policy.lora=null", "policy.adapter={seed}/tuned/handover/peft", "cold_start=null")
_ALONE = ("cold_start=null", "frozen=true", "rollout_model=local:smollm2-135m")

RUNS: Mapping[str, tuple[str, ...]] = {
    "tuned": ("coevolution.evidence=false", "coevolution.steps=0"),
    "coevolved": _TUNED,
    "rewarded": (*_TUNED, "coevolution.evidence=false"),
    "alone": _ALONE,
    "shuffled": (*_TUNED, "coevolution.shuffled=true"),
    "swapped": (*_ALONE, "tasks.world=swapped"),
    "followed": (*_ALONE, "tasks.world=swapped", "library={seed}/alone/handover/library.json"),
}
"""By name what a run changes of the demo's configuration:

* ``tuned``: the fine-tuning alone, which the next ones begin with;
* ``coevolved``: the demo's form, policy and library learn;
* ``rewarded``: the policy learns from rewards, the library stays;
* ``alone``: no weight changes; the library learns from what the untouched model does in the
  runtime;
* ``shuffled``: as ``coevolved``, and each tool is taught from what another one did;
* ``swapped``: as ``alone``, in the world whose tools demand other words and units;
* ``followed``: the same, beginning with the library that ``alone`` learned in the first world.
"""

KNOWN = "known"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A set of answers: which run's model, which run's library, in which world.

    Empty names are those of the untouched pair, and the library ``known`` has every demand of the
    world as a rule: what evolution could find at best.
    """

    model: str = ""
    library: str = ""
    world: World = "first"

    def __str__(self) -> str:
        return f"{self.world}-{self.model or 'untouched'}-{self.library or 'original'}"


ANSWERS = (
    Asked(),
    Asked(library="alone"),
    Asked(library="coevolved"),
    Asked(model="tuned"),
    Asked(model="rewarded"),
    Asked(model="coevolved"),
    Asked(model="coevolved", library="coevolved"),
    Asked(library="shuffled"),
    Asked(model="tuned", library="coevolved"),
    Asked(model="rewarded", library="coevolved"),
    Asked(model="shuffled", library="shuffled"),
    Asked(world="swapped"),
    Asked(world="swapped", library="alone"),
    Asked(world="swapped", library="swapped"),
    Asked(world="swapped", library="followed"),
    Asked(world="swapped", model="coevolved"),
    Asked(world="swapped", model="coevolved", library="coevolved"),
    Asked(world="swapped", model="coevolved", library="swapped"),
    Asked(library=KNOWN),
    Asked(model="coevolved", library=KNOWN),
)

PAIRS = (
    (Asked(model="rewarded"), Asked(model="tuned")),
    (Asked(library="coevolved"), Asked(library="alone")),
    (Asked(model="coevolved", library="coevolved"), Asked(library="coevolved")),
    (Asked(model="coevolved", library="coevolved"), Asked(model="coevolved")),
    (Asked(model="coevolved", library="coevolved"), Asked(model="tuned", library="coevolved")),
    (Asked(model="coevolved", library="coevolved"), Asked(model="rewarded", library="coevolved")),
    (Asked(world="swapped", library="swapped"), Asked(world="swapped", library="alone")),
    (Asked(world="swapped", library="followed"), Asked(world="swapped", library="swapped")),
)
"""What is compared beside the untouched pair: the first minus the second."""

QUESTIONS = 24


def config_of(seed: int, run: str, output: Path, changes: Sequence[str]) -> CoevolveConfig:
    """The demo's configuration for a run; nothing is measured in between."""
    text = resources.files("agentkit_training").joinpath("demo.yaml").read_text(encoding="utf-8")
    own = [f"tasks.seed={seed}", f"coevolution.seed={seed}", f"cold_start.seed={seed}"]
    unmeasured = ["tasks.validation=0", "tasks.test=0"]
    switches = [one.format(seed=output / str(seed)) for one in RUNS[run]]
    return parse_config(text, CoevolveConfig, changes=[*own, *unmeasured, *changes, *switches])


def make(seed: int, run: str, output: Path, changes: Sequence[str]) -> None:
    """Go through a run, unless it is there."""
    folder = output / str(seed) / run
    if (folder / HANDOVER).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    config = config_of(seed, run, output, changes)
    coevolve_job(config, folder, listen=lambda record: print(seed, run, record, flush=True))


class Remembering:
    """A greedy model that is asked the same once: both worlds put the same questions."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._known: dict[str, ModelResponse] = {}

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The answer, or the one that was given before."""
        tools = [one.digest for one in request.tools]
        key = repr((request.messages, tools, request.tool_choice, request.settings))
        if key not in self._known:
            self._known[key] = await self._model.complete(request)
        return self._known[key]


def answers(seed: int, output: Path, changes: Sequence[str], questions: int) -> None:
    """Which held-out tasks the runtime answers rightly, wherever the runs are there."""
    folder = output / str(seed)
    config = config_of(seed, "tuned", output, changes)
    tasks = replace(config.tasks, test=questions)
    for pair in dict.fromkeys((one.model, one.library) for one in ANSWERS):
        wanted = [one for one in ANSWERS if (one.model, one.library) == pair]
        missing = [one for one in wanted if not (folder / f"{one}.json").exists()]
        places = {name: folder / name / HANDOVER for name in pair if name not in ("", KNOWN)}
        if not missing or not all(place.exists() for place in places.values()):
            continue
        handed = {name: load_handover(place) for name, place in places.items()}
        artifact = handed[pair[1]].artifact if pair[1] in handed else None
        held = library_of("rules") if pair[1] == KNOWN else artifact and artifact.library
        name = handed[pair[0]].model if pair[0] else config.policy.weights
        with closing(resolve_model(name)) as model:
            remembering = Remembering(model)
            for one in missing:
                report = evaluate_job(
                    remembering,
                    load_tasks_for_training(replace(tasks, world=one.world)).test,
                    config.asking.settings(),
                    library=held,
                    concurrency=1,
                )
                _write(seed, one, report, folder)


def _write(seed: int, asked: Asked, report: EvaluationReport, folder: Path) -> None:
    passed = {one.task: one.passed == one.attempts for one in report.results}
    record = {"seed": seed, **asdict(asked), "passed": passed}
    (folder / f"{asked}.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    print(seed, asked, f"{sum(passed.values())} of {len(passed)}", flush=True)


def summary(output: Path) -> None:
    """Share of right answers, and paired differences with intervals."""
    found: dict[Asked, Right] = {}
    for path in sorted(output.glob("*/*.json")):
        record = json.loads(path.read_text())
        asked = Asked(**{name: record[name] for name in ("model", "library", "world")})
        passed = {(record["seed"], task): right for task, right in record["passed"].items()}
        found.setdefault(asked, {}).update(passed)
    print("right answers of each seed in brackets; differences with 95 % intervals")
    for asked in (one for one in ANSWERS if one in found):
        right = found[asked]
        count = sum(right.values())
        share = f"{count} of {len(right)} ({count / len(right):.1%}) [{of_each_seed(right)}]"
        print(f"{asked!s:36} {share:34} {gain(found[Asked(world=asked.world)], right)}")
    for one, other in PAIRS:
        if one in found and other in found:
            print(f"{one!s:36} against {other!s:32} {gain(found[other], found[one])}")


def main() -> None:
    """Make and ask what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument(
        "--parts", nargs="*", choices=[*RUNS, "answers"], default=[*RUNS, "answers"]
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="held-out, for each seed")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for run in (one for one in RUNS if one in given.parts):
            make(seed, run, given.output, given.changes)
        if "answers" in given.parts:
            answers(seed, given.output, given.changes, given.questions)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
