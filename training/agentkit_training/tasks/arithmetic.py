"""Arithmetic with four primitives and a few recurring calculations: where composites pay.

Every question takes two to five calls of primitives, and the same few sequences of calls come back
with other numbers: a bill, an average, a share, a discount, a bill with a discount. A composite
that holds such a sequence saves its calls. The world keeps the last number that was calculated,
whichever tools did it, so that a solution counts with composites and without.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Literal, TypeAlias

import yaml

from agentkit.episodes import Episode, Turn, Verdict
from agentkit.errors import DatasetError, ModelRetry, UsageError
from agentkit.evaluation import Benchmark, FinalState, GoldCall, Task
from agentkit.library import Library
from agentkit.messages import AssistantMessage, JsonObject, ToolCall, ToolResult
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool
from agentkit_bench import gsm8k_benchmark, gsm8k_episodes, load_gsm8k
from agentkit_training.tasks.splits import Shares, TaskSplits, parts_of, split, split_before

Operation: TypeAlias = Literal["add", "sub", "mul", "div", "floor_div"]
"""The primitives, under the names that ``replay_solution`` has for the operators of GSM8K."""

Number: TypeAlias = int | float

_FUNCTIONS: Mapping[Operation, tuple[str, Callable[[Number, Number], Number]]] = {
    "add": ("Add b to a.", lambda a, b: a + b),
    "sub": ("Take b from a.", lambda a, b: a - b),
    "mul": ("Multiply a by b.", lambda a, b: a * b),
    "div": ("Divide a by b.", lambda a, b: a / b),
    "floor_div": ("How many times b goes into a as a whole.", lambda a, b: a // b),
}
OPERATIONS: tuple[Operation, ...] = tuple(_FUNCTIONS)

_DIGITS = 9


class Calculator:
    """The primitives, bound, and the last number that they gave: an ``Environment``.

    A composite runs the same primitives, so that the world does not tell solutions with composites
    from those without.

    Args:
        operations: Which of the primitives there are.

    Example:
        >>> world = Calculator()
        >>> {tool.name: tool for tool in world.tools()}["mul"](a=6, b=7)
        42
        >>> world.state()
        {'result': 42}
    """

    def __init__(self, operations: Collection[Operation] = OPERATIONS) -> None:
        self._operations = tuple(operations)
        self._result: Number | None = None

    def tools(self) -> Sequence[Tool]:
        """The primitives."""
        return tuple(self._tool(name) for name in self._operations)

    def state(self) -> JsonObject:
        """The last number; None before the first."""
        return {"result": self._result}

    def _tool(self, name: Operation) -> Tool:
        def call(a: Number, b: Number) -> Number:
            self._result = calculated(name, a, b)
            return self._result

        number = {"type": "number"}
        definition = ToolDefinition.from_schema(
            name,
            _FUNCTIONS[name][0],
            {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
            result=number,
            effects=Effects.pure(),
        )
        return Tool(definition=definition, function=call)


def primitive_library(operations: Collection[Operation] = OPERATIONS) -> Library:
    """The primitives as a library, bound to a calculator of their own."""
    return Library(Calculator(operations).tools())


def calculated(name: Operation, a: Number, b: Number) -> Number:
    """One calculation; a whole number is an integer.

    Raises:
        ModelRetry: There is no such number, or none that JSON can hold.

    Example:
        >>> calculated("div", 84, 2)
        42
    """
    try:
        value = _FUNCTIONS[name][1](a, b)
        is_finite = math.isfinite(value)
    except (ZeroDivisionError, OverflowError) as error:
        raise ModelRetry(f"{name} of {a} and {b} is no number: {error}") from error
    if not is_finite:
        raise ModelRetry(f"{name} of {a} and {b} is no finite number; use smaller ones")
    rounded = round(value, _DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


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
    return gsm8k_benchmark(file, environment=lambda _task: Calculator())


FOUR: tuple[Operation, ...] = ("add", "sub", "mul", "div")

_CUTS = ((0.0, 0.6), (0.6, 0.8), (0.8, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A calculation that comes back with other numbers.

    Attributes:
        name: Its name, the category of its questions.
        templates: Questions, with a letter in braces for each number.
        ranges: What the numbers are drawn from, by letter.
        steps: Calls of primitives: the operation and two operands, each a letter, a number, or
            ``#0`` for the result of the first step.
    """

    name: str
    templates: tuple[str, ...]
    ranges: Mapping[str, Sequence[int]]
    steps: tuple[tuple[Operation, str, str], ...]


def _recipes() -> Iterator[Recipe]:
    text = resources.files(__package__).joinpath("recipes.yaml").read_text(encoding="utf-8")
    for name, told in yaml.safe_load(text).items():
        yield Recipe(
            name=name,
            templates=tuple(told["templates"]),
            ranges={letter: range(*bounds) for letter, bounds in told["ranges"].items()},
            steps=tuple((operation, left, right) for operation, left, right in told["steps"]),
        )


RECIPES: tuple[Recipe, ...] = tuple(_recipes())
"""The calculations of ``recipes.yaml``; the last two hold the sequences of earlier ones."""


def arithmetic(
    *,
    seed: int = 0,
    train: int = 20,
    validation: int = 5,
    test: int = 10,
    recipes: Sequence[Recipe] = RECIPES,
) -> TaskSplits:
    """Word problems that are solved with a few calls of four primitives.

    Args:
        seed: Of the numbers and words.
        train: Questions of each recipe in the first part.
        validation: In the second.
        test: In the third. No two questions of a recipe have the same numbers.
        recipes: The calculations.

    Raises:
        UsageError: A recipe has not so many different numbers.

    Example:
        >>> parts = arithmetic(train=2)
        >>> parts.train.tasks[0].expects[0].calls[0].name
        'mul'
    """
    sizes = (train, validation, test)
    parts: tuple[list[Task], list[Task], list[Task]] = ([], [], [])
    for recipe in recipes:
        for part, found in zip(parts, _numbers(recipe, sizes, seed), strict=True):
            part.extend(_task(recipe, one, seed) for one in found)
    benchmark = Benchmark(
        name="arithmetic",
        tasks=(),
        definitions=tuple(tool.definition for tool in Calculator(FOUR).tools()),
        environment=lambda _task: Calculator(FOUR),
    )
    return parts_of(benchmark, parts)


def arithmetic_episodes(benchmark: Benchmark) -> Iterator[Episode]:
    """The gold calls of each task as a successful episode with one call a turn.

    They serve as ``gsm8k_episodes`` do: to distil composites from (CoCoDA, stage 1), and to teach
    the form of a solution before reinforcement learning (stage 2).

    Args:
        benchmark: Tasks of this family.
    """
    for task in benchmark.tasks:
        expected = task.expects[0]
        assert isinstance(expected, FinalState)  # arithmetic() makes no others
        yield _episode(task, expected.calls)


def _episode(task: Task, gold: Sequence[GoldCall]) -> Episode:
    tools = {tool.name: tool for tool in Calculator(FOUR).tools()}
    turns: list[Turn] = []
    text = ""
    for number, one in enumerate(gold, start=1):
        value = tools[one.name](**one.arguments)
        text = str(value)
        call = ToolCall(call_id=f"call_{number}", name=one.name, arguments=one.arguments)
        result = ToolResult(
            call_id=call.call_id, name=one.name, status="ok", value=value, text=text
        )
        turns.append(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)))
    return Episode(
        episode_id=f"gold:{task.task_id}",
        request=task.request,
        turns=(*turns, Turn(message=AssistantMessage(text=text))),
        output=text,
        verdict=Verdict(passed=True, score=1.0),
        metadata={"benchmark": "arithmetic", "task": task.task_id},
    )


def _numbers(
    recipe: Recipe, sizes: Sequence[int], seed: int
) -> Iterator[Sequence[Mapping[str, int]]]:
    """Different numbers for each part; how many one part gets does not change the others."""
    pool = list(product(*recipe.ranges.values()))
    random.Random(f"{seed}/{recipe.name}").shuffle(pool)  # noqa: S311 - to be repeated
    for size, (low, high) in zip(sizes, _CUTS, strict=True):
        share = pool[round(low * len(pool)) : round(high * len(pool))]
        if size > len(share):
            raise UsageError(
                f"the recipe {recipe.name} has {len(share)} different sets of numbers for a part "
                f"of {size} questions; ask for fewer"
            )
        yield [dict(zip(recipe.ranges, numbers, strict=True)) for numbers in share[:size]]


def _task(recipe: Recipe, numbers: Mapping[str, int], seed: int) -> Task:
    task_id = ":".join((recipe.name, *map(str, numbers.values())))
    words = random.Random(f"{seed}/{task_id}")  # noqa: S311 - to be repeated
    calls: list[GoldCall] = []
    results: list[Number] = []

    def value(operand: str) -> Number:
        if operand.startswith("#"):
            return results[int(operand[1:])]
        return numbers[operand] if operand in numbers else int(operand)

    for name, left, right in recipe.steps:
        a, b = value(left), value(right)
        calls.append(GoldCall(name=name, arguments={"a": a, "b": b}))
        results.append(calculated(name, a, b))
    return Task(
        task_id=task_id,
        category=recipe.name,
        request=words.choice(recipe.templates).format(**numbers),
        offered=FOUR,
        expects=(FinalState(state={"result": results[-1]}, calls=tuple(calls)),),
    )
