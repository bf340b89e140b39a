"""Questions about the demo's tools, drawn in three parts that share no question and no number.

A question says in plain words what is needed, as "over four years" where the tool wants 48. The
definition alone does not say how that is written; the definition and what was learned do.
"""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain, repeat

from agentkit.cli.demo_tools import TOOLS
from agentkit.errors import UsageError
from agentkit.evaluation.environments import with_tools
from agentkit.evaluation.expectations import ExactCalls, GoldCall
from agentkit.evaluation.task import Benchmark, Task

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
    for tool in _TOPICS:
        drawn = _tasks(tool, seed, LEARN + GATE + each)
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


def _tasks(tool: str, seed: int, count: int) -> list[Task]:
    """Questions about one tool, each with a number of its own; all words come equally often."""
    topic, draw = _TOPICS[tool], random.Random(f"{seed}/{tool}")  # noqa: S311 - to be repeated
    words, tasks = topic["words"], []
    spoken = chain.from_iterable(draw.sample([*each], len(each)) for each in repeat(words))
    numbers = draw.sample(range(*topic["numbers"]), count)
    for at, (number, said) in enumerate(zip(numbers, spoken, strict=False)):
        arguments = {topic["number"]: number, topic["hidden"]: words[said]}
        gold = ExactCalls(calls=(GoldCall(name=tool, arguments=arguments),))
        tasks.append(
            Task(
                task_id=f"{tool}-{at}",
                category=tool,
                request=draw.choice(topic["templates"]).format(number=number, words=said),
                offered=(tool,),
                expects=(gold,),
            )
        )
    return tasks
