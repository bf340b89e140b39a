"""What tasks must not share across a split: a question, or the name of a function."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    CustomExpectation,
    ExactCalls,
    Expectation,
    FinalState,
    Task,
)
from agentkit.messages import UserMessage

Functions: TypeAlias = Literal["offered", "gold", "free"]
"""Which function names must not be shared: all that a task offers, those of its gold, or none.
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
    for name in _functions(task, functions):
        found.add(("function", names.get(name, name)))
    return frozenset(found)


def _functions(task: Task, functions: Functions) -> Iterable[str]:
    if functions == "free":
        return ()
    if functions == "offered":
        return [name for turn in task.turns for name in turn.offers]
    return [name for turn in task.turns for one in turn.expects for name in _gold_tools(one)]


def _gold_tools(expectation: Expectation) -> Iterable[str]:
    if isinstance(expectation, CustomExpectation):
        return expectation.gold_tools
    if isinstance(expectation, AllowedCalls | ExactCalls | FinalState):
        return [call.name for call in expectation.calls]
    return ()


def components(benchmark: Benchmark, functions: Functions = "offered") -> list[list[Task]]:
    """The tasks in groups such that no two groups share a question or a function name.

    Args:
        benchmark: The tasks.
        functions: Which function names count.
    """
    joined = _Joined()
    for number, signs in enumerate(signs_of_all(benchmark, functions)):
        joined.add(number, signs)
    groups: dict[int, list[Task]] = {}
    for number, task in enumerate(benchmark.tasks):
        groups.setdefault(joined.root(number), []).append(task)
    return list(groups.values())


class _Joined:
    """Groups of numbers that grow together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self._first: dict[Sign, int] = {}

    def root(self, number: int) -> int:
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def add(self, number: int, signs: Iterable[Sign]) -> None:
        self._above[number] = number
        for sign in signs:
            first = self.root(self._first.setdefault(sign, number))
            self._above[self.root(number)] = first
