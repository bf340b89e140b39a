"""What fine-tuning an adapter brings on questions of BFCL that share nothing with the taught ones.

For each seed: the policy of ``examples/sft.yaml`` learns gold answers of ``multiple`` and
``live_simple``, and is asked questions of ``simple_python`` before and after. It is asked in two
ways: written freely by the policy itself (``free``), and by the runtime's local model under its
grammar, where the form of a call is given (``runtime``). No seed is asked another one's questions::

    python tests/benchmarks/effects/bfcl_sft.py --output bfcl-sft --seeds 1 2 3 4 5 --summary

A finished part is kept and not done again, so that a long series may be broken off.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from bfcl import EXAMPLES, asked, held_out, keep, kept, of_seed
from intervals import gain, of_each_seed

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark
from agentkit.models.base import resolve_model
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.export.handover import base_weights
from agentkit_training.export.weights import Architecture, adapter_to_gguf
from agentkit_training.fine_tuning.examples import make_examples
from agentkit_training.fine_tuning.training import sft
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.toolace.difficulty import gold_answers

WAYS = ("free", "runtime")
RUNTIME = 24


def config_of(seed: int, changes: list[str]) -> SftConfig:
    """The example's configuration with samples, adapters and an order of a seed."""
    text = (EXAMPLES / "sft.yaml").read_text(encoding="utf-8")
    smaller = ["tasks.train=192", "sft.max_tokens=320"]
    return parse_config(text, SftConfig, changes=[*of_seed(seed), *smaller, *changes])


def tuned(policy: Policy, config: SftConfig, train: Benchmark) -> dict[str, object]:
    """Fine-tune; what it took."""
    examples = wait_for(
        make_examples(
            policy,
            train,
            gold_answers(train).answers,
            prompting=config.policy.prompting(),
            settings=config.asking.settings(),
        )
    )
    report = sft(policy, examples.rows, config.sft, listen=lambda step: print(step, flush=True))
    return {
        "examples": report.examples,
        "steps": len(report.steps),
        "loss": report.steps[-1].loss,
        "taught": [one.task_id for one in examples.rows if len(one) <= config.sft.max_tokens],
        "cpu_seconds": round(time.process_time(), 1),
    }


def free(seed: int, output: Path, config: SftConfig, test: Benchmark) -> None:
    """Ask, fine-tune, ask again; what was trained is kept."""
    target = output / f"free-{seed}-trained.json"
    if target.exists():
        return
    policy = config.policy.load(seed=seed)
    settings = config.asking.settings()
    model = config.policy.model(policy)
    base = asked(model, test, settings)
    print(seed, "base", base.right, dict(base.labels), flush=True)
    keep(output / f"free-{seed}-base.json", base, seed=seed)
    facts = tuned(policy, config, load_tasks_for_training(config.tasks).train)
    trained = asked(model, test, settings)
    print(seed, "trained", trained.right, dict(trained.labels), flush=True)
    save_adapter(policy, output / f"adapter-{seed}")
    keep(target, trained, seed=seed, **facts)


def runtime(seed: int, output: Path, config: SftConfig, test: Benchmark) -> None:
    """Ask the runtime's local model, with and without the adapter that was trained.

    It answers one question after the other, so that fewer are asked.
    """
    test = replace(test, tasks=test.tasks[:RUNTIME])
    file, base = output / f"adapter-{seed}.gguf", config.policy.weights
    weights, _ = base_weights(base)
    adapter_to_gguf(output / f"adapter-{seed}", file, base=Architecture.of_gguf(weights))
    for who, name in (("base", base), ("trained", f"{base}?adapter={file}")):
        target = output / f"runtime-{seed}-{who}.json"
        if target.exists():
            continue
        with closing(resolve_model(name)) as model:
            found = asked(model, test, config.asking.settings())
        print(seed, "runtime", who, found.right, dict(found.labels), flush=True)
        keep(target, found, seed=seed)


def summary(output: Path) -> None:
    """Right answers, and how the wrong ones are wrong, for each way of asking."""
    for way in WAYS:
        right: dict[str, dict[tuple[int, str], bool]] = {"base": {}, "trained": {}}
        for who, found in right.items():
            labels: Counter[str] = Counter()
            files = sorted(output.glob(f"{way}-*-{who}.json"))
            for file in files:
                answers = kept(file)
                seed = int(file.stem.split("-")[1])
                found.update({(seed, task): ok for task, ok in answers.passed.items()})
                labels.update(answers.labels)
            count = sum(found.values())
            share = f"{count} of {len(found)} ({count / max(1, len(found)):.1%})"
            print(f"{way:8} {who:8} {share:22} by seed {of_each_seed(found)}")
            print(f"{'':17} labels {dict(labels)}")
        if right["base"].keys() & right["trained"].keys():
            print(f"{way:8} {gain(right['base'], right['trained'])}")


def main() -> None:
    """Run what is asked for, then print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.output.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        config = config_of(seed, given.changes)
        test = held_out(load_tasks_for_training(config.tasks).test, seed, given.questions)
        for way, ask in (("free", free), ("runtime", runtime)):
            if way in given.ways:
                ask(seed, given.output, config, test)
    if given.summary:
        summary(given.output)


if __name__ == "__main__":
    main()
