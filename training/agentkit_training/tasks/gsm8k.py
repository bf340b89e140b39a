"""GSM8K with the primitive library, and its solutions as trajectories of primitive calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentkit.episodes import Episode
from agentkit.errors import DatasetError
from agentkit.evaluation import Benchmark, Task
from agentkit_bench import gsm8k_benchmark, gsm8k_episodes, load_gsm8k
from agentkit_training.tasks.primitives import Calculator, primitive_library
from agentkit_training.tasks.splits import Shares, TaskSplits
from agentkit_training.tasks.splitting import split, split_before


def gsm8k_tasks(
    train: Path, test: Path | None = None, *, shares: Shares | None = None, seed: int = 0
) -> TaskSplits:
    """Word problems, each asked with the five primitives.

    Args:
        train: A file of GSM8K, as ``gsm8k_benchmark`` takes it.
        test: The file to test on, usually upstream's ``test.jsonl``; the first is then divided into
            training and validation alone. None takes the test part out of the first as well.
        shares: How much each part gets.
        seed: Of the division. No question stands in two parts.

    Raises:
        DatasetError: A file is not there or holds no problem, or both files share a question.
    """
    wanted = shares or Shares()
    pool = _loaded(train)
    if test is None:
        return split(pool, shares=wanted, seed=seed, functions="free")
    return split_before(pool, _loaded(test), shares=wanted, seed=seed, functions="free")


def solution_episodes(file: Path, benchmark: Benchmark) -> Iterator[Episode]:
    """The solutions of a benchmark's problems as calls of primitives, where these reproduce them.

    They are what composites are distilled from (CoCoDA, stage 1) and what the form of a solution is
    learned from (stage 2).

    Args:
        file: The file that the problems come from, in upstream's form.
        benchmark: The problems to solve: the training part, so that nothing is learned from others.
    """
    wanted = {task.task_id for task in benchmark.tasks}
    problems = [one for one in load_gsm8k(file) if f"gsm8k:{one.problem_id}" in wanted]
    if not problems:
        raise DatasetError(
            f"no problem of {benchmark.name} comes from {file}; give the file that it was loaded "
            "from"
        )
    yield from gsm8k_episodes(problems, primitive_library())


def _loaded(file: Path) -> Benchmark:
    def made(_task: Task) -> Calculator:
        return Calculator()

    return gsm8k_benchmark(file, environment=made)
