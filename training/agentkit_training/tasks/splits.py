"""``TaskSplits``: the tasks to train on, to choose by, and to report."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import (
    Benchmark,
    Task,
    stratified,
)
from agentkit.evaluation.task_files import task_to_json
from agentkit.messages import UserMessage
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


_MOST_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Leakage:
    """What two benchmarks share.

    Attributes:
        questions: Questions that stand in both, as they are compared.
        functions: Names of functions that stand in both.
        tasks: Ids of all tasks of the second that share anything.
    """

    questions: tuple[str, ...]
    functions: tuple[str, ...]
    tasks: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is shared."""
        return not self.tasks

    def __str__(self) -> str:
        if self.is_clean:
            return "nothing is shared"
        shown = ", ".join(self.functions[:_MOST_SHOWN])
        more = f" ({shown}{', …' * (len(self.functions) > _MOST_SHOWN)})" if shown else ""
        return (
            f"{len(self.tasks)} tasks share something: {len(self.questions)} questions, "
            f"{len(self.functions)} function names{more}"
        )


def split(
    benchmark: Benchmark,
    *,
    shares: Shares | None = None,
    seed: int = 0,
    functions: Functions = "offered",
) -> TaskSplits:
    """Divide a benchmark so that no question and no function name stands in two parts.

    Tasks that share one are connected, and each connected component goes to one part as a whole:
    the large ones first, each to the part that lacks most. No part that is to get something stays
    empty.

    Args:
        benchmark: The tasks.
        shares: How much each part is to get; large components make the parts deviate from it,
            see ``TaskSplits.sizes``.
        seed: Of the order in which components of the same size are given away.
        functions: Which function names must not be shared.

    Raises:
        UsageError: There are fewer components than parts.

    Example:
        >>> tasks = [
        ...     Task(task_id=str(n), category="", request=f"Question {n // 2}?", offered=())
        ...     for n in range(10)
        ... ]
        >>> parts = split(Benchmark(name="pairs", tasks=tuple(tasks)), shares=Shares(test=0.1))
        >>> leakage(parts.train, parts.test).is_clean
        True
    """
    groups = components(benchmark, functions)
    found = divided(benchmark, groups, shares=shares, seed=seed)
    if found is None:
        raise UsageError(_why_not(benchmark, groups, functions))
    return found


def divided(
    benchmark: Benchmark,
    groups: Iterable[Sequence[Task]],
    *,
    shares: Shares | None = None,
    seed: int = 0,
) -> TaskSplits | None:
    """Give whole groups of tasks to the parts, the large ones first.

    Args:
        benchmark: Where the tasks come from, and in which order they stand.
        groups: All of its tasks in groups that must not be torn apart.
        shares: How much each part is to get.
        seed: Of the order in which groups of the same size are given away.

    Returns:
        The parts; None where there are fewer groups than parts.
    """
    wanted = (shares or Shares()).normalised
    parts: tuple[list[Task], list[Task], list[Task]] = ([], [], [])
    shuffled = list(groups)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a split to be repeated
    left = len(shuffled)
    for group in sorted(shuffled, key=len, reverse=True):
        empty = [at for at in range(3) if wanted[at] and not parts[at]]
        open_to = empty if left <= len(empty) else [at for at in range(3) if wanted[at]]
        lacking = {at: wanted[at] * len(benchmark.tasks) - len(parts[at]) for at in open_to}
        parts[max(lacking, key=lambda at: lacking[at])].extend(group)
        left -= 1
    if any(share and not part for share, part in zip(wanted, parts, strict=True)):
        return None
    place = {task.task_id: at for at, task in enumerate(benchmark.tasks)}
    for part in parts:
        part.sort(key=lambda task: place[task.task_id])
    return parts_of(benchmark, parts)


def split_before(
    pool: Benchmark,
    test: Benchmark,
    *,
    shares: Shares | None = None,
    seed: int = 0,
    functions: Functions = "offered",
) -> TaskSplits:
    """Divide a benchmark into training and validation beside a test part that is given.

    Args:
        pool: The tasks to divide.
        test: The tasks to test on.
        shares: How much training and validation get.
        seed: As in ``split``.
        functions: As in ``split``.

    Raises:
        DatasetError: The two share something.
        UsageError: The pool can not be divided so.
    """
    found = leakage(test, pool, functions=functions)
    if not found.is_clean:
        raise DatasetError(
            f"{pool.name} and {test.name} are not apart: {found}, the first is {found.tasks[0]}; "
            "drop such tasks (without_leakage), or test on others"
        )
    kept = replace(shares or Shares(), test=0)
    return replace(split(pool, shares=kept, seed=seed, functions=functions), test=test)


def leakage(one: Benchmark, other: Benchmark, *, functions: Functions = "offered") -> Leakage:
    """What the second benchmark shares with the first.

    Args:
        one: The tasks to be kept apart from, such as those to train on.
        other: The tasks that are counted, such as those to test on.
        functions: Which function names count.
    """
    known = set[Sign]().union(*signs_of_all(one, functions))
    shared = [signs & known for signs in signs_of_all(other, functions)]
    every = sorted(set[Sign]().union(*shared))
    return Leakage(
        questions=tuple(text for kind, text in every if kind == "question"),
        functions=tuple(text for kind, text in every if kind == "function"),
        tasks=tuple(task.task_id for task, signs in zip(other.tasks, shared, strict=True) if signs),
    )


def without_leakage(
    pool: Benchmark, held_out: Benchmark, *, functions: Functions = "offered"
) -> tuple[Benchmark, Leakage]:
    """A pool to train on without what it shares with held-out tasks, and what that was."""
    found = leakage(held_out, pool, functions=functions)
    dropped = set(found.tasks)
    kept = tuple(task for task in pool.tasks if task.task_id not in dropped)
    return replace(pool, tasks=kept), found


def _why_not(benchmark: Benchmark, groups: Sequence[Sequence[Task]], functions: Functions) -> str:
    largest = max(groups, key=len, default=())
    message = (
        f"the {len(benchmark.tasks)} tasks of {benchmark.name} can not be divided as asked: they "
        f"fall into {len(groups)} groups that share no question or function name, and the largest "
        f"has {len(largest)}"
    )
    part = replace(benchmark, tasks=tuple(largest))
    counts = Counter(sign for signs in signs_of_all(part, functions) for sign in signs)
    shared = [text for (kind, text), count in counts.most_common() if kind == "function"]
    if shared:
        listed = ", ".join(shared[:_MOST_SHOWN])
        message += f", held together by {listed}; with functions='free' only questions count"
    return message


Functions: TypeAlias = Literal["offered", "free"]
"""Which function names must not be shared: all that a task offers, or none.
``free`` is for benchmarks whose tasks all use the same few tools, such as simulated worlds."""

Sign: TypeAlias = tuple[Literal["question", "function"], str]
"""Something that two tasks must not share across a split."""

_WORD = re.compile(r"\w+")


def normalised(question: str) -> str:
    """A question without case, punctuation and spacing: what makes two questions the same.

    Example:
        >>> normalised("What's  the AREA of a 3-4-5 triangle?")
        'what s the area of a 3 4 5 triangle'
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", question).casefold()))


def signs_of_all(benchmark: Benchmark, functions: Functions = "offered") -> list[frozenset[Sign]]:
    """What each task must not share with tasks of another part, in the order of the tasks.

    Args:
        benchmark: The tasks.
        functions: Which function names count.
    """
    names = {one.name: one.origin.original_name or one.name for one in benchmark.definitions}
    return [_signs(task, names, functions) for task in benchmark.tasks]


def _signs(task: Task, names: Mapping[str, str], functions: Functions) -> frozenset[Sign]:
    asked = [one.text for one in task.history if isinstance(one, UserMessage)]
    question = normalised("\n".join([*asked, *(turn.request for turn in task.turns)]))
    found: set[Sign] = {("question", question)} if question else set()
    if functions == "offered":
        offers = (name for turn in task.turns for name in turn.offers)
        found |= {("function", names.get(name, name)) for name in offers}
    return frozenset(found)


def components(benchmark: Benchmark, functions: Functions = "offered") -> list[list[Task]]:
    """The tasks in groups such that no two groups share a question or a function name.

    Args:
        benchmark: The tasks.
        functions: Which function names count.
    """
    import networkx as nx

    graph = nx.Graph()
    for number, signs in enumerate(signs_of_all(benchmark, functions)):
        graph.add_node(number)
        graph.add_edges_from((number, sign) for sign in signs)
    found = nx.connected_components(graph)
    groups = sorted(sorted(one for one in group if isinstance(one, int)) for group in found)
    return [[benchmark.tasks[number] for number in group] for group in groups]
