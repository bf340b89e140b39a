"""Questions about the demo's tools, drawn in three parts that share no question and no number.

A question says in plain words what is needed, as "over four years" where the tool wants 48. The
definition alone does not say how that is written; the definition and what was learned do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from agentkit.cli.demo.tools import (
    TOOLS,
    colour_lamp,
    give_discount,
    loan_rate,
    order_shirts,
    report_sales,
)
from agentkit.errors import UsageError
from agentkit.evaluation.environments import with_tools
from agentkit.evaluation.expectations import ExactCalls, GoldCall
from agentkit.evaluation.task import Benchmark, Task
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Topic:
    """What people ask of a tool.

    Attributes:
        tool: The tool.
        number: The parameter whose value is said as it is written.
        numbers: What it may be.
        hidden: The parameter whose values the definition hides.
        words: What people say for each of its values.
        templates: Questions, with ``{number}`` and ``{words}``.
    """

    tool: Tool
    number: str
    numbers: Sequence[int]
    hidden: str
    words: Mapping[str, object]
    templates: tuple[str, ...]


_TOPICS = (
    _Topic(
        tool=loan_rate,
        number="amount",
        numbers=range(2100, 9900, 130),
        hidden="periods",
        words={"three years": 36, "four years": 48, "five years": 60},
        templates=(
            "What does a loan of {number} over {words} cost a month?",
            "I need a loan of {number} for {words}. What is it a month?",
            "How much a month is a loan of {number} that runs for {words}?",
        ),
    ),
    _Topic(
        tool=order_shirts,
        number="count",
        numbers=range(11, 99),
        hidden="size",
        words={"small": "small-36", "medium": "medium-40", "large": "large-44"},
        templates=(
            "Order {number} {words} shirts.",
            "We need {number} shirts, size {words}.",
            "Please order {number} shirts in {words}.",
        ),
    ),
    _Topic(
        tool=report_sales,
        number="year",
        numbers=range(1985, 2027),
        hidden="quarter",
        words={
            "first quarter": "1st",
            "second quarter": "2nd",
            "third quarter": "3rd",
            "fourth quarter": "4th",
        },
        templates=(
            "What was sold in the {words} of {number}?",
            "Report the sales of the {words} of {number}.",
            "How were the sales in {number}, {words}?",
        ),
    ),
    _Topic(
        tool=colour_lamp,
        number="lamp",
        numbers=range(11, 99),
        hidden="colour",
        words={"red": "red-1", "green": "green-2", "blue": "blue-3", "yellow": "yellow-4"},
        templates=(
            "Set lamp {number} to {words}.",
            "Lamp {number} should be {words}.",
            "Make lamp {number} {words}, please.",
        ),
    ),
    _Topic(
        tool=give_discount,
        number="customer",
        numbers=range(6007, 6990, 17),
        hidden="share",
        words={f"{percent} percent": percent / 100 for percent in (10, 15, 20, 25, 30, 40)},
        templates=(
            "Give customer {number} a discount of {words}.",
            "Customer {number} gets {words} off.",
            "Please take {words} off for customer {number}.",
        ),
    ),
)

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
    room = min(len(topic.numbers) for topic in _TOPICS) - LEARN - GATE
    if not 1 <= each <= room:
        most = room * len(TOOLS)
        raise UsageError(f"{score} questions cannot be drawn; ask for {len(TOOLS)} to {most}")
    parts: dict[str, list[Task]] = {"learn": [], "gate": [], "score": []}
    for topic in _TOPICS:
        drawn = _tasks(topic, seed, LEARN + GATE + each)
        parts["learn"] += [replace(task, expects=()) for task in drawn[:LEARN]]
        parts["gate"] += drawn[LEARN : LEARN + GATE]
        parts["score"] += drawn[LEARN + GATE :]
    return Questions(**{name: _benchmark(name, tasks) for name, tasks in parts.items()})


def _tasks(topic: _Topic, seed: int, count: int) -> list[Task]:
    """Questions about one tool, each with a number of its own; all words come equally often."""
    draw = random.Random(f"{seed}/{topic.tool.name}")  # noqa: S311 - to be repeated
    spoken = chain.from_iterable(
        draw.sample(words, len(words)) for words in repeat(list(topic.words))
    )
    numbers = draw.sample(topic.numbers, count)
    return [
        Task(
            task_id=f"{topic.tool.name}-{at}",
            category=topic.tool.name,
            request=draw.choice(topic.templates).format(number=number, words=words),
            offered=(topic.tool.name,),
            expects=(
                ExactCalls(
                    calls=(
                        GoldCall(
                            name=topic.tool.name,
                            arguments={topic.number: number, topic.hidden: topic.words[words]},
                        ),
                    )
                ),
            ),
        )
        for at, (number, words) in enumerate(zip(numbers, spoken, strict=False))
    ]


def _benchmark(part: str, tasks: list[Task]) -> Benchmark:
    return Benchmark(
        name=f"demo-{part}",
        tasks=tuple(tasks),
        definitions=tuple(one.definition for one in TOOLS),
        environment=with_tools(TOOLS),
    )
