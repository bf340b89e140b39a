"""The adapter that ``agentkit-local`` ships for ``smollm2-135m``: how it is trained and chosen.

It learns from questions of BFCL's live categories with one right call or none, that share neither
question nor function name with ``simple_python``, ``multiple`` and ``irrelevance``. Each question
with a call is there three times: as it is, beside tools of other questions, and with tools of other
questions alone, where no call is right. The prompt is that of ``LocalModel``, now with the choice
of not calling, now without.

Each setting is a process of its own; the one that has most validation questions right is taken.
The reported categories are asked freely here, before (``base``) and after; under the grammar by
``agentkit eval bfcl --model 'local:smollm2-135m?adapter=FILE'``::

    python tests/benchmarks/effects/local_adapter.py --output adapter --setting base --epochs 0
    python tests/benchmarks/effects/local_adapter.py --output adapter --setting live
    python tests/benchmarks/effects/local_adapter.py --output adapter --summary --gguf adapter.gguf
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from bfcl import EXAMPLES, Answers, asked, keep, kept

from agentkit._waiting import wait_for
from agentkit.evaluation import AllowedCalls, Benchmark, EvaluationSettings, NoCall, Task
from agentkit_bench import fetch_bfcl, load_bfcl
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.export.handover import base_weights
from agentkit_training.export.weights import Architecture, adapter_to_gguf
from agentkit_training.fine_tuning.examples import Example, make_examples
from agentkit_training.fine_tuning.training import SftStep, sft
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.splits import Shares, split, without_leakage
from agentkit_training.toolace.difficulty import gold_answers

REPORTED = ("simple_python", "multiple", "irrelevance")
TAUGHT = ("live_simple", "live_multiple", "live_irrelevance")
NO_CALL = "None of the functions can answer that."
CHANGES = (
    "policy.lora.full_precision=false",
    "sft.batch_size=16",
    "sft.epochs=2",
    "sft.max_tokens=768",
)
"""What differs from ``examples/sft.yaml``."""

Choice = Literal["auto", "required"]


def settings_of(choice: Choice) -> EvaluationSettings:
    """How questions are asked: with the choice of not calling, or without."""
    return EvaluationSettings(max_steps=1, tool_choice=choice)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is learned from, chosen by and reported."""

    train: tuple[Benchmark, ...]
    validation: Benchmark
    reported: Benchmark

    @classmethod
    def of(cls, folder: Path, more: Path | None, questions: int | None) -> Parts:
        """Read BFCL and divide it so that no two parts share a question or a function name.

        Args:
            folder: BFCL.
            more: Further questions to learn from, in the same layout.
            questions: Most of each reported category; None for all.
        """
        whole = load_bfcl(folder)
        reported = _of_categories(whole, REPORTED)
        pool, _ = without_leakage(_of_categories(whole, TAUGHT), reported)
        parts = split(pool, shares=Shares(train=0.85, validation=0.15, test=0), seed=0)
        validation = parts.sampled(validation=192).validation
        further = () if more is None else (load_bfcl(more),)
        apart = [reported, validation]
        for other in apart:
            further = tuple(without_leakage(one, other)[0] for one in further)
        if questions is not None:
            taken = [_of_categories(reported, {name}).tasks[:questions] for name in REPORTED]
            reported = replace(reported, tasks=tuple(one for part in taken for one in part))
        return cls(train=(parts.train, *further), validation=validation, reported=reported)


def _of_categories(benchmark: Benchmark, wanted: Collection[str]) -> Benchmark:
    return replace(benchmark, tasks=tuple(t for t in benchmark.tasks if t.category in wanted))


def _only(benchmark: Benchmark, ids: Collection[str]) -> Benchmark:
    return replace(benchmark, tasks=tuple(t for t in benchmark.tasks if t.task_id in ids))


def varied(benchmark: Benchmark, refusals: float) -> Iterator[tuple[Choice, Task]]:
    """Each task as it is, beside other tools, and a share of them with other tools alone."""
    chance = random.Random(0)
    words = {one.name: _words(f"{one.name} {one.text}") for one in benchmark.definitions}
    offered = sorted({name for task in benchmark.tasks for name in task.offered})
    for number, task in enumerate(benchmark.tasks):
        if not any(isinstance(one, AllowedCalls) for one in task.expects):
            if chance.random() < refusals:
                yield "auto", task
            continue
        asked_for = _words(task.request)
        foreign = [name for name in chance.sample(offered, 40) if not words[name] & asked_for]
        beside = [*task.offered, *foreign[: chance.randint(1, 3)]]
        chance.shuffle(beside)
        choices: tuple[Choice, Choice] = ("auto", "required")
        yield choices[number % 2], task
        if len(set(beside)) == len(beside):
            more = replace(task, task_id=f"{task.task_id}+others", offered=tuple(beside))
            yield choices[1 - number % 2], more
        alone = tuple(foreign[: chance.randint(1, 3)])
        if alone and chance.random() < refusals:
            name = f"{task.task_id}+none"
            yield "auto", replace(task, task_id=name, offered=alone, expects=(NoCall(),))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]{4,}", text.lower().replace("_", " ")))


def examples_of(
    policy: Policy, tasks: Benchmark, config: SftConfig, choice: Choice
) -> tuple[Example, ...]:
    """What is learned of tasks, as far as it is short enough."""
    made = make_examples(
        policy,
        tasks,
        gold_answers(tasks, no_call=NO_CALL).answers,
        prompting=config.policy.prompting(),
        settings=settings_of(choice),
        max_tokens=config.sft.max_tokens,
    )
    return wait_for(made).rows


def taught(policy: Policy, train: Benchmark, config: SftConfig, refusals: float) -> list[Example]:
    """What is learned of one benchmark."""
    found: list[Example] = []
    tasks = list(varied(train, refusals))
    choices: tuple[Choice, ...] = ("auto", "required")
    for choice in choices:
        part = replace(train, tasks=tuple(task for one, task in tasks if one == choice))
        found += examples_of(policy, part, config, choice)
    return found


def told(step: SftStep) -> None:
    """Tell of some steps."""
    if step.step % 20 == 0:
        print(step.step, "of", step.steps, f"loss {step.loss:.3f}", flush=True)


def run(given: argparse.Namespace) -> None:
    """Train one setting, and ask validation and reported questions."""
    text = (EXAMPLES / "sft.yaml").read_text(encoding="utf-8")
    own = [f"sft.epochs={given.epochs}"] if given.epochs else []
    config = parse_config(text, SftConfig, changes=[*CHANGES, *own, *given.changes])
    folder = Path(config.tasks.data) if config.tasks.data else fetch_bfcl()
    parts = Parts.of(folder, given.more, given.questions)
    policy, name, facts = config.policy.load(), given.setting, {}
    if given.epochs:
        rows = [row for one in parts.train for row in taught(policy, one, config, given.share)]
        report = sft(policy, rows[: given.examples], config.sft, listen=told)
        facts = {"examples": report.examples, "steps": len(report.steps)}
        save_adapter(policy, given.output / name)
    model = config.policy.model(policy)

    def ask(part: str, tasks: Benchmark, choice: Choice) -> None:
        found = asked(model, tasks, settings_of(choice))
        keep(given.output / f"{name}.{part}.{choice}.json", found, **facts)
        print(name, part, choice, found.right, dict(found.labels), flush=True)

    short = {one.task_id for one in examples_of(policy, parts.validation, config, "auto")}
    ask("validation", _only(parts.validation, short), "auto")
    for category in REPORTED:
        tasks = _of_categories(parts.reported, {category})
        for choice in ("auto",) if category == "irrelevance" else ("auto", "required"):
            ask(category, tasks, choice)


def summary(output: Path) -> str:
    """Print what each setting has right; the one that has most of the validation questions."""
    found: dict[str, dict[str, Answers]] = {}
    for file in sorted(output.glob("*.*.*.json")):
        name, part = file.stem.split(".", 1)
        found.setdefault(name, {})[part] = kept(file)
    for name, parts in found.items():
        shares = (f"{part} {one.right} of {len(one.passed)}" for part, one in parts.items())
        print(f"{name:12} {'; '.join(shares)}")
    trained = [name for name in found if (output / name).is_dir()]
    return max(trained, key=lambda name: found[name]["validation.auto"].right)


def main() -> None:
    """Train what is asked for, or choose and convert."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--setting", help="its name")
    parser.add_argument("--epochs", type=int, default=2, help="0 asks the untrained model")
    parser.add_argument("--share", type=float, default=0.5, help="of questions without a call")
    parser.add_argument("--more", type=Path, help="further questions, in BFCL's layout")
    parser.add_argument("--examples", type=int, help="most of them, for a rehearsal")
    parser.add_argument("--questions", type=int, help="most of each reported category")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--chosen", type=Path, help="copy the chosen adapter to this folder")
    parser.add_argument("--gguf", type=Path, help="write the chosen adapter for the local model")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    if given.setting:
        run(given)
    if given.summary:
        best = given.output / summary(given.output)
        print("chosen:", best.name)
        if given.chosen:
            shutil.copytree(best, given.chosen, dirs_exist_ok=True)
        if given.gguf:
            weights, _ = base_weights("local:smollm2-135m")
            base = Architecture.of_gguf(weights)
            adapter_to_gguf(best, given.gguf, base=base, precision="f16")


if __name__ == "__main__":
    main()
