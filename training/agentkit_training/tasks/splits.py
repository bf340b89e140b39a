"""``TaskSplits``: the tasks to train on, to choose by, and to report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task, stratified
from agentkit.evaluation.task_files import task_to_json
from agentkit.tools.canonical import digest


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSplits:
    """One benchmark in three parts that share no question.

    Attributes:
        train: To train and to learn texts from.
        validation: To choose by: settings, early stopping, which candidate text is kept.
        test: To report; nothing is chosen by it.
    """

    train: Benchmark
    validation: Benchmark
    test: Benchmark

    def __iter__(self) -> Iterator[tuple[str, Benchmark]]:
        """The parts with their names, in the order in which they are used."""
        yield "train", self.train
        yield "validation", self.validation
        yield "test", self.test

    @property
    def sizes(self) -> dict[str, int]:
        """How many tasks each part has, for the record of a run."""
        return {name: len(part.tasks) for name, part in self}

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the questions, answers and tools of each part, for the record of a run.

        Equal digests say that two runs were trained and tested on the same, wherever it came from.
        """
        return {name: _digest(part) for name, part in self}

    def sampled(
        self,
        *,
        train: int | None = None,
        validation: int | None = None,
        test: int | None = None,
        seed: int = 0,
    ) -> TaskSplits:
        """Smaller parts, spread over the categories; a part that has fewer stays whole.

        Args:
            train: Tasks of the first part; None for all.
            validation: Tasks of the second.
            test: Tasks of the third.
            seed: Makes the choice.
        """
        return TaskSplits(
            train=_sampled(self.train, train, seed),
            validation=_sampled(self.validation, validation, seed),
            test=_sampled(self.test, test, seed),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """How much of the tasks each part gets.

    Attributes:
        train: Share of the first part.
        validation: Share of the second.
        test: Share of the third.

    Example:
        >>> Shares(train=8, validation=1, test=1).normalised
        (0.8, 0.1, 0.1)
    """

    train: float = 0.7
    validation: float = 0.1
    test: float = 0.2

    def __post_init__(self) -> None:
        given = (self.train, self.validation, self.test)
        if min(given) < 0 or sum(given) <= 0:
            raise UsageError(
                f"the shares of train, validation and test are {given}; give numbers that are not "
                "negative and not all 0, such as 0.7, 0.1 and 0.2"
            )

    @property
    def normalised(self) -> tuple[float, float, float]:
        """The three shares, adding up to 1."""
        whole = self.train + self.validation + self.test
        return self.train / whole, self.validation / whole, self.test / whole


def parts_of(benchmark: Benchmark, parts: tuple[list[Task], list[Task], list[Task]]) -> TaskSplits:
    """Splits of one benchmark out of lists of its tasks."""
    train, validation, test = (replace(benchmark, tasks=tuple(tasks)) for tasks in parts)
    return TaskSplits(train=train, validation=validation, test=test)


def _sampled(benchmark: Benchmark, size: int | None, seed: int) -> Benchmark:
    if size is None:
        return benchmark
    return replace(benchmark, tasks=stratified(benchmark.tasks, size, seed=seed))


def _digest(benchmark: Benchmark) -> str:
    tools = {one.name: one.digest for one in benchmark.definitions}
    tasks = [task_to_json(task) for task in benchmark.tasks]
    offered = {name for task in benchmark.tasks for turn in task.turns for name in turn.offers}
    return digest(
        {"tasks": tasks, "tools": {name: tools.get(name, "") for name in sorted(offered)}}
    )
