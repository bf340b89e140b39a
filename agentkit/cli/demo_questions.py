"""The demo's tools, and questions about them in three parts that share no question and no number.

The five tools of an office are plain code, as anybody writes them: each refuses what its definition
does not say. A call that breaks such a rule gets a sentence back, as a careful backend gives one.

A question says in plain words what is needed, as "over four years" where the tool wants 48. The
definition alone does not say how that is written; the definition and what was learned do.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain, repeat

from agentkit.errors import ModelRetry, UsageError
from agentkit.evaluation.environments import with_tools
from agentkit.evaluation.expectations import ExactCalls, GoldCall
from agentkit.evaluation.task import Benchmark, Task
from agentkit.tools.decorator import tool
from agentkit.tools.tool import Tool

TERMS = (36, 48, 60)
SIZES = ("small-36", "medium-40", "large-44")
QUARTERS = ("1st", "2nd", "3rd", "4th")
COLOURS = ("red-1", "green-2", "blue-3", "yellow-4")


def _one_of(name: str, value: object, accepted: Collection[object]) -> None:
    """Refuse a value that is not accepted.

    Raises:
        ModelRetry: With the values that are.
    """
    if value not in accepted:
        values = ", ".join(map(str, accepted))
        raise ModelRetry(f"{name} must be one of {values}, got {value}")


@tool(effects=("reads",))
def loan_rate(amount: int, periods: int) -> str:
    """What a loan costs a month.

    Args:
        amount: The sum.
        periods: How long it runs.
    """
    _one_of("periods", periods, TERMS)
    return f"{amount / periods:.2f} a month"


@tool(effects=("writes",))
def order_shirts(count: int, size: str) -> str:
    """Order shirts.

    Args:
        count: How many.
        size: The size.
    """
    _one_of("size", size, SIZES)
    return f"{count} shirts ordered"


@tool(effects=("reads",))
def report_sales(year: int, quarter: str) -> str:
    """Report what was sold.

    Args:
        year: The year.
        quarter: The quarter.
    """
    _one_of("quarter", quarter, QUARTERS)
    return f"sales of the {quarter} quarter of {year}"


@tool(effects=("writes",))
def colour_lamp(lamp: int, colour: str) -> str:
    """Set the colour of a lamp.

    Args:
        lamp: Number of the lamp.
        colour: Which colour.
    """
    _one_of("colour", colour, COLOURS)
    return f"lamp {lamp} is {colour}"


@tool(effects=("writes",))
def give_discount(customer: int, share: float) -> str:
    """Give a customer a discount.

    Args:
        customer: Number of the customer.
        share: How much.
    """
    if not 0 <= share <= 1:
        raise ModelRetry(f"share must be between 0 and 1, got {share}")
    return f"customer {customer} pays {1 - share:.0%} of the price"


TOOLS: tuple[Tool, ...] = (loan_rate, order_shirts, report_sales, colour_lamp, give_discount)
"""All tools of the demo."""

_TOPICS = tomllib.loads((files("agentkit.cli") / "demo_topics.toml").read_text(encoding="utf-8"))

LEARN = 3
"""Questions about each tool that lessons come from."""

GATE = 12
"""Questions about each tool that decide what is promoted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """The three parts.

    Attributes:
        learn: What lessons come from. These have no gold calls: a tool's refusal is all there is.
        gate: What decides whether a lesson is promoted.
        score: What the table reports; nothing is learned or decided with them.
    """

    learn: Benchmark
    gate: Benchmark
    score: Benchmark


def draw_questions(seed: int, score: int) -> Questions:
    """Draw all questions.

    Args:
        seed: Equal seeds give equal questions.
        score: How many to report on; each tool gets its share.

    Raises:
        UsageError: There are fewer than one for each tool, or more than the numbers allow for.
    """
    each = score // len(TOOLS)
    room = min(len(range(*topic["numbers"])) for topic in _TOPICS.values()) - LEARN - GATE
    if not 1 <= each <= room:
        most = room * len(TOOLS)
        raise UsageError(f"{score} questions cannot be drawn; ask for {len(TOOLS)} to {most}")
    parts: dict[str, list[Task]] = {"learn": [], "gate": [], "score": []}
    for name in _TOPICS:
        drawn = _tasks(name, seed, LEARN + GATE + each)
        parts["learn"] += [replace(task, expects=()) for task in drawn[:LEARN]]
        parts["gate"] += drawn[LEARN : LEARN + GATE]
        parts["score"] += drawn[LEARN + GATE :]
    return Questions(
        **{
            name: Benchmark(
                name=f"demo-{name}",
                tasks=tuple(tasks),
                definitions=tuple(one.definition for one in TOOLS),
                environment=with_tools(TOOLS),
            )
            for name, tasks in parts.items()
        }
    )


def _tasks(name: str, seed: int, count: int) -> list[Task]:
    """Questions about one tool, each with a number of its own; all words come equally often."""
    topic, draw = _TOPICS[name], random.Random(f"{seed}/{name}")  # noqa: S311 - to be repeated
    words, tasks = topic["words"], []
    spoken = chain.from_iterable(draw.sample([*each], len(each)) for each in repeat(words))
    numbers = draw.sample(range(*topic["numbers"]), count)
    for at, (number, said) in enumerate(zip(numbers, spoken, strict=False)):
        arguments = {topic["number"]: number, topic["hidden"]: words[said]}
        gold = ExactCalls(calls=(GoldCall(name=name, arguments=arguments),))
        tasks.append(
            Task(
                task_id=f"{name}-{at}",
                category=name,
                request=draw.choice(topic["templates"]).format(number=number, words=said),
                offered=(name,),
                expects=(gold,),
            )
        )
    return tasks
