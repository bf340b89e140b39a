"""The lean engine beside plain TRL: generation, update and memory, in one run on the tiny model.

    python tests/benchmarks/engines.py [--rounds 3] [--steps 5] [--width 64] [--json FILE]

Each engine runs in processes of its own, one after the other in every round, on one thread, in
float32, on the same weights and prompts, with answers of the same length. Figures are CPU time of
the process, medians over all steps of all rounds; the first two steps of a process do not count.

* ``trl`` is GRPOTrainer with ``transformers`` generation and everything as TRL has it (loss dapo,
  no KL divergence, rewards scaled in their group, one update a step), but for what would slow it
  on a CPU or write files: float32 in place of bf16, no checkpoints, no logs, and gradient
  checkpointing off. ``trl-checkpointed`` leaves gradient checkpointing on, as a user gets it.
* ``lean`` is LeanEngine with its defaults; its answers are written by ``complete``.

Both sample at temperature 1. Tokens of an update are the prompt and completion tokens of the batch,
padding not counted: the same number for both, however often an engine reads them. An update is
everything between the rewarded batch and the new weights.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ENGINES = ("trl", "trl-checkpointed", "lean")
WARM_UP = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is run.

    Attributes:
        name: For the table.
        group: Answers to each prompt: G.
        prompts: Different prompts in a step.
        prompt_tokens: About how many each has.
        completion_tokens: Most tokens of an answer.
        ends: How many of the vocabulary's tokens end an answer. With 1 hardly any answer ends
            early, so that all rows are written side by side to the last token.
    """

    name: str
    group: int
    prompts: int
    prompt_tokens: int
    completion_tokens: int
    ends: int = 1


SETTINGS = (
    Setting(name="G=8", group=8, prompts=4, prompt_tokens=200, completion_tokens=48),
    Setting(
        name="G=8, answers of many lengths",
        group=8,
        prompts=4,
        prompt_tokens=200,
        completion_tokens=96,
        ends=20,
    ),
    Setting(
        name="G=16, long prompts", group=16, prompts=2, prompt_tokens=400, completion_tokens=64
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What one step cost: tokens and seconds of CPU time."""

    written: int
    generation_s: float
    read: int
    update_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What an engine did in one setting.

    Attributes:
        generation: Completion tokens written in a CPU second.
        update: Prompt and completion tokens of the batch trained on in a CPU second.
        peak_mib: Most resident memory of the process.
        grown_mib: By how much that is more than before the first step.
    """

    setting: str
    engine: str
    generation: float
    update: float
    peak_mib: float
    grown_mib: float


def main() -> None:
    """Run every engine in every setting; print a table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--setting", type=int, choices=range(len(SETTINGS)), action="append")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)  # one process' part
    options = parser.parse_args()
    chosen = [SETTINGS[number] for number in options.setting or range(len(SETTINGS))]
    if options.engine:
        print(json.dumps(measured(options, chosen[0])))
        return
    print(f"{'':30} {'engine':17} {'written/s':>10} {'trained/s':>10} {'peak MiB':>9} {'grown':>6}")
    rows = [row for setting in chosen for row in compared(options, setting)]
    if options.json:
        record = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "layers": options.layers,
            "width": options.width,
            "settings": [asdict(one) for one in chosen],
            "rows": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def compared(options: argparse.Namespace, setting: Setting) -> Iterator[Figures]:
    """The figures of every engine in one setting, and a line of how they compare."""
    found: dict[str, list[Mapping[str, Any]]] = {engine: [] for engine in ENGINES}
    for _ in range(options.rounds):
        for engine in ENGINES:
            found[engine].append(apart(options, setting, engine))
    rows = {engine: figures(setting, engine, runs) for engine, runs in found.items()}
    for row in rows.values():
        print(
            f"{setting.name:30} {row.engine:17} {row.generation:10.0f} {row.update:10.0f} "
            f"{row.peak_mib:9.0f} {row.grown_mib:6.0f}",
            flush=True,
        )
        yield row
    ours = rows["lean"]
    for engine in ENGINES[:-1]:
        plain = rows[engine]
        print(
            f"{'':30} lean / {engine}: generation {ours.generation / plain.generation:.2f}, "
            f"update {ours.update / plain.update:.2f}, peak {ours.peak_mib / plain.peak_mib:.2f}"
        )


def apart(options: argparse.Namespace, setting: Setting, engine: str) -> Mapping[str, Any]:
    """One engine's run, in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--engine", engine]
    command += ["--setting", str(SETTINGS.index(setting)), "--steps", str(options.steps)]
    command += ["--layers", str(options.layers), "--width", str(options.width)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-3000:]}")
    record: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def figures(setting: Setting, engine: str, runs: list[Mapping[str, Any]]) -> Figures:
    """Medians over the steps of all runs."""
    steps = [Step(**step) for run in runs for step in run["steps"]]
    return Figures(
        setting=setting.name,
        engine=engine,
        generation=median(step.written / step.generation_s for step in steps),
        update=median(step.read / step.update_s for step in steps),
        peak_mib=median(run["peak_mib"] for run in runs),
        grown_mib=median(run["peak_mib"] - run["before_mib"] for run in runs),
    )


def measured(options: argparse.Namespace, setting: Setting) -> Mapping[str, Any]:
    """Run one engine in this process."""
    import torch

    torch.set_num_threads(1)
    policy = policy_of(setting, layers=options.layers, width=options.width)
    count = WARM_UP + options.steps
    run = lean_steps if options.engine == "lean" else trl_steps
    with TemporaryDirectory() as folder:
        steps, before = run(policy, setting, count, folder, options.engine)
    return {
        "steps": [asdict(step) for step in steps[WARM_UP:]],
        "before_mib": before,
        "peak_mib": peak_mib(),
    }


def policy_of(setting: Setting, *, layers: int, width: int) -> Any:
    """The tiny policy; the last ``ends`` tokens of its vocabulary end an answer."""
    from agentkit_training import tiny_policy

    policy = tiny_policy(layers=layers, width=width)
    last = len(policy.tokenizer)
    extra = set(range(last - setting.ends + 1, last))
    return replace(policy, end_ids=policy.end_ids | extra)


def prompts_of(policy: Any, setting: Setting, step: int) -> list[str]:
    """Different prompts of about the wanted length, as text."""
    line = "Choose the function that answers the question and fill in its arguments, item {}. "
    texts = []
    for number in range(setting.prompts):
        text = f"Question {step}-{number}: "
        while len(policy.tokenizer(text)["input_ids"]) < setting.prompt_tokens:
            text += line.format(number + len(text))
        texts.append(text)
    return texts


def even(ids: list[int]) -> float:
    """The share of even tokens, a reward with a spread in every group."""
    return sum(token % 2 == 0 for token in ids) / len(ids)


def resident_mib() -> float:
    """Resident memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mib() -> float:
    """Most resident memory so far (kilobytes on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


class Clock:
    """CPU time of the phases of a step."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.spent[phase] = self.spent.get(phase, 0.0) + time.process_time() - started


# --- lean --------------------------------------------------------------------------------------


def lean_steps(
    policy: Any, setting: Setting, count: int, folder: str, engine: str
) -> tuple[list[Step], float]:
    """The lean engine, with a source that writes answers and judges them."""
    from agentkit_training.engines.base import OptimizerSettings
    from agentkit_training.engines.lean import LeanEngine

    source = LeanSource(policy, setting)
    lean = LeanEngine(optimizer=OptimizerSettings(learning_rate=1e-6))
    before = resident_mib()
    lean.train(policy, source, steps=count)
    return source.steps, before


class LeanSource:
    """Writes G answers to each prompt; takes the time between them and the new weights."""

    def __init__(self, policy: Any, setting: Setting) -> None:
        self.policy = policy
        self.setting = setting
        self.steps: list[Step] = []

    def rollouts(self, step: int, share: object) -> list[Any]:
        from agentkit_training.generation.decoding import Prompt, complete

        setting, clock = self.setting, Clock()
        texts = prompts_of(self.policy, setting, step)
        with clock("generation"):
            prompts = [
                Prompt(
                    ids=tuple(self.policy.tokenizer(text)["input_ids"]),
                    max_tokens=setting.completion_tokens,
                    seed=1000 * step + number,
                )
                for number, text in enumerate(text for text in texts for _ in range(setting.group))
            ]
            completions = complete(self.policy, prompts)
        found = [
            rollout(setting, number, prompt, completion)
            for number, (prompt, completion) in enumerate(zip(prompts, completions, strict=True))
        ]
        self.written = sum(len(one.ids) for one in completions)
        self.read = self.written + sum(len(one.ids) for one in prompts)
        self.generation_s = clock.spent["generation"]
        self.started = time.process_time()
        return found

    def finished(self, report: object) -> None:
        self.steps.append(
            Step(
                written=self.written,
                generation_s=self.generation_s,
                read=self.read,
                update_s=time.process_time() - self.started,
            )
        )


def rollout(setting: Setting, number: int, prompt: Any, completion: Any) -> Any:
    """A rollout of one answer."""
    from agentkit_training import Rollout, TokenSequence

    sequence = TokenSequence(
        prompt=prompt.ids,
        completion=completion.ids,
        written=(True,) * len(completion.ids),
        logprobs=completion.logprobs,
    )
    return Rollout(
        task_id=str(number // setting.group),
        attempt=number % setting.group,
        episodes=(),
        sequences=(sequence,),
        library_version=0,
        reward=even(list(completion.ids)),
    )


# --- TRL ---------------------------------------------------------------------------------------


def trl_steps(
    policy: Any, setting: Setting, count: int, folder: str, engine: str
) -> tuple[list[Step], float]:
    """GRPOTrainer as a user has it, with a clock around its phases."""
    from datasets import Dataset
    from trl import GRPOConfig

    rows = setting.group * setting.prompts
    arguments = GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=rows,
        num_generations=setting.group,
        max_completion_length=setting.completion_tokens,
        max_steps=count,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        gradient_checkpointing=engine == "trl-checkpointed",
        bf16=False,
        use_cpu=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        shuffle_dataset=False,
    )
    policy.model.generation_config.eos_token_id = sorted(policy.end_ids)
    texts = [text for step in range(count) for text in prompts_of(policy, setting, step)]
    trainer = timed_trainer()(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": text} for text in texts]),
        reward_funcs=lambda completion_ids, **_: [even(ids) for ids in completion_ids],
    )
    trainer.generation_config.eos_token_id = sorted(policy.end_ids)
    before = resident_mib()
    trainer.train()
    return trainer.taken, before


def timed_trainer() -> type[Any]:
    """GRPOTrainer with a clock; a function, since TRL takes seconds to load."""
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    class Timed(GRPOTrainer):  # type: ignore[misc]
        """Takes the time of generation, and of everything after the advantages."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.taken: list[Step] = []
            self.clock = Clock()
            self.add_callback(Ended(self))

        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            with self.clock("generation"):
                return super()._generate_single_turn(*args, **kwargs)

        def _prepare_inputs(self, *args: Any, **kwargs: Any) -> Any:
            batch = super()._prepare_inputs(*args, **kwargs)
            self.written = int(batch["completion_mask"].sum())
            self.read = self.written + int(batch["prompt_mask"].sum())
            self.started = time.process_time()
            return batch

    class Ended(TrainerCallback):  # type: ignore[misc]
        """Notes a step when its weights are in place."""

        def __init__(self, trainer: Timed) -> None:
            self.trainer = trainer

        def on_step_end(self, *args: object, **kwargs: object) -> None:
            trainer = self.trainer
            trainer.taken.append(
                Step(
                    written=trainer.written,
                    generation_s=trainer.clock.spent.pop("generation"),
                    read=trainer.read,
                    update_s=time.process_time() - trainer.started,
                )
            )

    return Timed


if __name__ == "__main__":
    main()
