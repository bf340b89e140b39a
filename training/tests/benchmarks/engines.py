"""The lean engine beside plain TRL: generation, update and memory, in one run on the tiny model.

    python tests/benchmarks/engines.py [--rounds 3] [--steps 5] [--width 64] [--json FILE]
    python tests/benchmarks/engines.py --weights local:smollm2-135m --device cuda --setting "32 x 16"

Each engine runs in processes of its own, in turns, on one thread, in float32, on the same weights and
prompts, with answers of the same length. Figures are CPU time of the process, medians over all steps of
all rounds; the first two steps of a process do not count. On a GPU it is time on the wall, with the
GPU's work done, and the memory is the GPU's.

* ``trl`` is GRPOTrainer with ``transformers`` generation and everything as TRL has it (loss dapo,
  no KL divergence, rewards scaled in their group, one update a step), but for what would slow it
  on a CPU or write files: float32 in place of bf16, no checkpoints, no logs, no gradient
  checkpointing.
* ``lean`` is LeanEngine with its defaults; its answers are written by ``complete``.

Both sample at temperature 1. Tokens of an update are the prompt and completion tokens of the batch,
padding not counted: the same number for both, however often an engine reads them. An update is
everything between the rewarded batch and the new weights.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "benchmarks"))

from harness import arguments, in_turns, medians, report, result, worker

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

WARM_UP = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is run.

    Attributes:
        group: Answers to each prompt: G.
        prompts: Different prompts in a step.
        prompt_tokens: About how many each has.
        completion_tokens: Most tokens of an answer.
        ends: How many of the vocabulary's tokens end an answer. With 1 hardly any answer ends
            early, so that all rows are written side by side to the last token.
    """

    group: int
    prompts: int
    prompt_tokens: int
    completion_tokens: int
    ends: int = 1


SETTINGS = {
    "G=8": Setting(group=8, prompts=4, prompt_tokens=200, completion_tokens=48),
    "G=8, answers of many lengths": Setting(
        group=8, prompts=4, prompt_tokens=200, completion_tokens=96, ends=20
    ),
    "G=16, long prompts": Setting(group=16, prompts=2, prompt_tokens=400, completion_tokens=64),
}
LARGE = {"32 x 16": Setting(group=16, prompts=32, prompt_tokens=200, completion_tokens=48)}
"""What a GPU has room for."""


@dataclass(kw_only=True, slots=True)
class Steps:
    """Seconds and tokens of the steps of a run."""

    device: str = "cpu"
    written: int = 0
    read: int = 0
    generation: float = 0.0
    began: float = 0.0
    rates: list[tuple[float, float]] | None = None

    def now(self) -> float:
        """CPU seconds of this process; with a GPU those on the wall, once its work is done."""
        import torch

        if self.device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def ended(self) -> None:
        """Note the tokens a second of a step whose weights are in place."""
        update = self.now() - self.began
        self.rates = [
            *(self.rates or ()),
            (self.written / self.generation, self.read / update),
        ]
        self.generation = 0.0


def measured(options: argparse.Namespace) -> dict[str, float]:
    """Run one engine in this process."""
    import torch

    from agentkit_training import load_policy, tiny_policy

    torch.set_num_threads(1)
    setting = (SETTINGS | LARGE)[options.one]
    if options.weights:
        policy = load_policy(options.weights, precision="fp32", device=options.device)
    else:
        policy = tiny_policy(layers=options.layers, width=options.width)
    last = len(policy.tokenizer)  # the last tokens of its vocabulary end an answer
    extra = set(range(last - setting.ends + 1, last))
    policy = replace(policy, end_ids=policy.end_ids | extra)
    run = ENGINES[options.engine]
    with TemporaryDirectory() as folder:
        steps = run(policy, setting, WARM_UP + options.steps, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2**10
    if options.device != "cpu":
        peak = torch.cuda.max_memory_allocated()
    rates = (steps.rates or [])[WARM_UP:]
    return {
        "written/s": median(written for written, _ in rates),
        "trained/s": median(trained for _, trained in rates),
        "peak MiB": peak / 2**20,
    }


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


def lean_steps(policy: Any, setting: Setting, count: int, folder: str) -> Steps:
    """The lean engine, with a source that writes answers and judges them."""
    from agentkit_training.engines.base import OptimizerSettings
    from agentkit_training.engines.lean import LeanEngine

    source = LeanSource(policy, setting)
    LeanEngine(optimizer=OptimizerSettings(learning_rate=1e-6)).train(policy, source, steps=count)
    return source.steps


class LeanSource:
    """Writes G answers to each prompt; takes the time between them and the new weights."""

    def __init__(self, policy: Any, setting: Setting) -> None:
        self.policy, self.setting = policy, setting
        self.steps = Steps(device=policy.device.type)

    def rollouts(self, step: int, share: object) -> list[Any]:
        """The rewarded answers of a step."""
        from agentkit_training import Rollout, TokenSequence
        from agentkit_training.generation.decoding import Prompt, complete

        setting, steps = self.setting, self.steps
        texts = prompts_of(self.policy, setting, step)
        began = steps.now()
        prompts = [
            Prompt(
                ids=tuple(self.policy.tokenizer(text)["input_ids"]),
                max_tokens=setting.completion_tokens,
                seed=1000 * step + number,
            )
            for number, text in enumerate(text for text in texts for _ in range(setting.group))
        ]
        completions = complete(self.policy, prompts)
        steps.generation = steps.now() - began
        steps.written = sum(len(one.ids) for one in completions)
        steps.read = steps.written + sum(len(one.ids) for one in prompts)
        found = []
        for number, (prompt, one) in enumerate(zip(prompts, completions, strict=True)):
            sequence = TokenSequence(
                prompt=prompt.ids,
                completion=one.ids,
                written=(True,) * len(one.ids),
                logprobs=one.logprobs,
            )
            rollout = Rollout(
                task_id=str(number // setting.group),
                attempt=number % setting.group,
                episodes=(),
                sequences=(sequence,),
                library_version=0,
                reward=even(list(one.ids)),
            )
            found.append(rollout)
        steps.began = steps.now()
        return found

    def finished(self, report: object) -> None:
        """Note a step."""
        self.steps.ended()


def trl_steps(policy: Any, setting: Setting, count: int, folder: str) -> Steps:
    """GRPOTrainer as a user has it, with a clock around its phases."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    steps = Steps(device=policy.device.type)

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            began = steps.now()
            found = super()._generate_single_turn(*args, **kwargs)
            steps.generation += steps.now() - began
            return found

        def _prepare_inputs(self, *args: Any, **kwargs: Any) -> Any:
            batch = super()._prepare_inputs(*args, **kwargs)
            steps.written = int(batch["completion_mask"].sum())
            steps.read = steps.written + int(batch["prompt_mask"].sum())
            steps.began = steps.now()
            return batch

    class Ended(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *args: object, **kwargs: object) -> None:
            steps.ended()

    arguments = GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=setting.group * setting.prompts,
        num_generations=setting.group,
        max_completion_length=setting.completion_tokens,
        max_steps=count,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=steps.device == "cpu",
        dataloader_pin_memory=False,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        shuffle_dataset=False,
    )
    policy.model.generation_config.eos_token_id = sorted(policy.end_ids)
    texts = [text for step in range(count) for text in prompts_of(policy, setting, step)]
    trainer = Timed(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": text} for text in texts]),
        reward_funcs=lambda completion_ids, **_: [even(ids) for ids in completion_ids],
        callbacks=[Ended()],
    )
    trainer.generation_config.eos_token_id = sorted(policy.end_ids)
    trainer.train()
    return steps


ENGINES = {"trl": trl_steps, "lean": lean_steps}


def compared(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The figures of every engine in every setting, and how lean compares."""
    same = ["--steps", str(options.steps), "--layers", str(options.layers)]
    same += ["--width", str(options.width), "--device", options.device]
    same += ["--weights", options.weights] if options.weights else []
    for setting in options.setting or SETTINGS:
        command = [sys.executable, "-W", "ignore", __file__, *same, "--one", setting, "--engine"]
        measures = {name: partial(worker, [*command, name]) for name in ENGINES}
        found = {name: medians(runs) for name, runs in in_turns(measures, options.rounds).items()}
        for name, figures in found.items():
            yield {"setting": setting, "engine": name, **figures}
        beside = {name: one / found["trl"][name] for name, one in found["lean"].items()}
        yield {"setting": setting, "engine": "lean / trl", **beside}


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--weights", default="", help="in the place of the tiny model")
    parser.add_argument("--device", default="cpu", help="of those weights")
    parser.add_argument("--setting", choices=SETTINGS | LARGE, action="append")
    parser.add_argument(
        "--one", choices=SETTINGS | LARGE, help=argparse.SUPPRESS
    )  # one process' part
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        result(measured(options))
    else:
        report(list(compared(options)), options)
