"""Fine-tuning beside TRL's SFTTrainer: tokens a second and memory, in one run.

    python tests/benchmarks/sft.py [--rounds 3] [--steps 6] [--width 64] [--vocabulary 600] \
[--json FILE]

Both train a random Llama in float32 on one thread on the same examples, in processes of their own,
one after the other in every round: prompts of 100 to 500 tokens, answers of 20 to 60, 16 examples
a step. Figures are CPU time a step, medians over all steps of all rounds; the first two steps of a
process do not count. Tokens are those of the examples; padding is not counted.

* ``sft`` is ours with its defaults.
* ``trl`` reads 8 rows at once in TRL's own order; ``trl-16`` reads all 16.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

TRAINERS = ("sft", "trl", "trl-16")
BATCH = 16
WARM_UP = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What one process measured.

    Attributes:
        trainer: Which.
        seconds: CPU time of each step.
        tokens: Of all steps together, padding left out.
        peak_mib: Largest resident memory of the process.
    """

    trainer: str
    seconds: tuple[float, ...]
    tokens: int
    peak_mib: float


def examples(count: int):
    """Examples of many lengths, the same ones each time."""
    from agentkit_training.fine_tuning.examples import Example

    generator = random.Random(0)

    def tokens(least: int, most: int) -> tuple[int, ...]:
        return tuple(generator.choices(range(300), k=generator.randint(least, most)))

    return [
        Example(task_id=str(number), prompt=tokens(100, 500), completion=tokens(20, 60))
        for number in range(count)
    ]


def policy_of(width: int, vocabulary: int):
    """A random policy, with rows of its vocabulary that no text needs."""
    from agentkit_training import tiny_policy

    policy = tiny_policy(width=width)
    policy.model.resize_token_embeddings(vocabulary)
    return policy


def measured(trainer: str, arguments: argparse.Namespace) -> Figures:
    """Train in this process."""
    import torch

    from agentkit_training.fine_tuning.settings import SftSettings
    from agentkit_training.fine_tuning.training import sft
    from agentkit_training.fine_tuning.trl import sft_with_trl

    torch.set_num_threads(1)
    policy = policy_of(arguments.width, arguments.vocabulary)
    rows = examples(BATCH * (arguments.steps + WARM_UP))
    times: list[float] = []

    def listen(_: object) -> None:
        times.append(time.process_time())

    settings = SftSettings(batch_size=BATCH)
    if trainer == "sft":
        sft(policy, rows, settings, listen=listen)
    else:
        at_once = BATCH if trainer == "trl-16" else 8
        sft_with_trl(policy, rows, settings, rows_at_once=at_once, listen=listen)
    taken = [after - before for before, after in pairwise(times)]
    return Figures(
        trainer=trainer,
        seconds=tuple(taken[WARM_UP - 1 :]),
        tokens=sum(map(len, rows)) * arguments.steps // (arguments.steps + WARM_UP),
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def table(found: Sequence[Figures], steps: int) -> list[dict[str, float | str]]:
    """One row for each trainer."""
    rows: list[dict[str, float | str]] = []
    for trainer in TRAINERS:
        mine = [one for one in found if one.trainer == trainer]
        step = median(second for one in mine for second in one.seconds)
        rows.append(
            {
                "trainer": trainer,
                "seconds_a_step": round(step, 4),
                "tokens_a_second": round(mine[0].tokens / steps / step),
                "peak_mib": round(median(one.peak_mib for one in mine)),
            }
        )
    return rows


def main() -> None:
    """Run each trainer in processes of its own, and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=600)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=TRAINERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        sys.stdout.write(json.dumps(asdict(measured(arguments.only, arguments))) + "\n")
        return
    found: list[Figures] = []
    for _ in range(arguments.rounds):
        for trainer in TRAINERS:
            command = [sys.executable, __file__, *sys.argv[1:], "--only", trainer]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(Figures(**json.loads(done.stdout.splitlines()[-1])))
    rows = table(found, arguments.steps)
    for row in rows:
        sys.stdout.write(
            f"{row['trainer']:8} {row['seconds_a_step']:8.4f} s a step "
            f"{row['tokens_a_second']:8.0f} tokens/s {row['peak_mib']:6.0f} MiB\n"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
