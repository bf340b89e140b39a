"""What each half of co-evolution brings, on tools that demand what their definitions do not say.

For each seed: the demo's run with new questions, and its control, in which every tool learns from
what another tool did (``shuffled``). The runtime then answers held-out questions with each model
and each library::

    python tests/benchmarks/effects/hidden_constraints.py --output effects --seeds 1 2 3

A finished part is kept and not done again, so that a long series may be broken off. Seeds may run
as processes of their own beside each other. ``--summary`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agentkit.models.base import ChatModel
from agentkit_local.model import LocalModel, resolve
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.export.handover import Handover, load_handover
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.ending import HANDOVER
from agentkit_training.jobs.evaluate import Examination, evaluate_job
from agentkit_training.tasks.loading import load_tasks_for_training

CONTROLS = {"evidence": (), "shuffled": ("coevolution.shuffled=true",)}


def config_of(seed: int, control: str, changes: list[str]) -> CoevolveConfig:
    """The demo's configuration with questions and samples of a seed."""
    text = resources.files("agentkit_training").joinpath("demo.yaml").read_text(encoding="utf-8")
    own = [f"tasks.seed={seed}", f"coevolution.seed={seed}", f"cold_start.seed={seed}"]
    return parse_config(text, CoevolveConfig, changes=[*own, *CONTROLS[control], *changes])


def passed(model: ChatModel, library: Any, config: CoevolveConfig) -> dict[str, bool]:
    """Which held-out tasks the runtime answers rightly."""
    test = load_tasks_for_training(config.tasks).test
    asked = Examination(
        benchmark=test, library=library, settings=config.asking.settings(), concurrency=1
    )
    report = evaluate_job(model, asked)
    return {one.task: one.passed == one.attempts for one in report.results}


def examined(handed: Handover, config: CoevolveConfig, control: str) -> dict[str, dict[str, bool]]:
    """The held-out tasks with each model and each library; the plain ones once a seed."""
    assert handed.artifact is not None
    found: dict[str, dict[str, bool]] = {}
    plain = control == "evidence"
    for trained in (False, True):
        model = resolve((handed.model if trained else handed.base).removeprefix("local:"))
        assert isinstance(model, LocalModel)
        with model:
            who = "trained" if trained else "base"
            if plain:
                found[f"{who}, original"] = passed(model, None, config)
            evolved = "evolved" if plain else "shuffled"
            found[f"{who}, {evolved}"] = passed(model, handed.artifact.library, config)
    return found


def run(seed: int, control: str, output: Path, changes: list[str]) -> None:
    """One run and its examination, unless it is there."""
    target = output / f"{control}-{seed}.json"
    if target.exists():
        return
    config = config_of(seed, control, changes)
    folder = output / f"{control}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    done = coevolve_job(config, folder, listen=lambda record: print(seed, control, record))
    found = examined(load_handover(done.path / HANDOVER), config, control)
    target.write_text(json.dumps({"seed": seed, "control": control, "passed": found}, indent=1))
    print(seed, control, {name: sum(one.values()) for name, one in found.items()}, flush=True)


def summary(output: Path, *, draws: int = 10_000) -> None:
    """Share of right answers and paired differences, with intervals from resampled tasks."""
    columns: dict[str, dict[tuple[int, str], bool]] = {}
    for path in sorted(output.glob("*.json")):
        record = json.loads(path.read_text())
        for name, tasks in record["passed"].items():
            keyed = {(record["seed"], task): right for task, right in tasks.items()}
            columns.setdefault(name, {}).update(keyed)
    base = columns["base, original"]
    random = np.random.default_rng(0)
    seeds = sorted({seed for seed, _ in base})
    print(f"{len(seeds)} seeds, {len(base)} held-out tasks; 95 % bootstrap intervals over tasks")
    for name, found in columns.items():
        keys = [key for key in base if key in found]
        right = np.array([found[key] for key in keys], dtype=float)
        gain = right - np.array([base[key] for key in keys], dtype=float)
        picks = random.integers(len(keys), size=(draws, len(keys)))
        low, high = np.percentile(gain[picks].mean(1), [2.5, 97.5])
        share = f"{right.mean():6.1%}  {int(right.sum()):3d}/{len(keys)}"
        print(f"{name:22} {share}  against base: {gain.mean():+.1%} [{low:+.1%}, {high:+.1%}]")


def main() -> None:
    """Run what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--controls", nargs="*", default=list(CONTROLS))
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for control in given.controls:
            run(seed, control, given.output, given.changes)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
