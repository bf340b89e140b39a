"""``Task``: one question of a benchmark, the tools it offers, and what a right answer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.messages import Message
from agentkit.metrics import AllowedCall
from agentkit.tools.definition import ToolDefinition

Expectation = Literal[
    "calls",  # the gold calls, all of them and no others
    "any_call",  # at least one call; there is no gold call to compare with
    "no_call",  # none of the offered tools fits, so the right answer is words
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One question.

    Attributes:
        task_id: Its id in the benchmark.
        category: The benchmark's name for this kind of question.
        request: What the user asks last.
        history: Messages before it, oldest first.
        offered: Names, in the catalogue, of the tools that the benchmark offers.
        expects: What a right answer is.
        gold: The calls of a right answer with the values that are right, named as in the
            catalogue; empty unless ``expects`` is ``"calls"``.
    """

    task_id: str
    category: str
    request: str
    offered: tuple[str, ...]
    history: tuple[Message, ...] = ()
    expects: Expectation = "calls"
    gold: tuple[AllowedCall, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Benchmark:
    """Questions together with the catalogue that they draw their tools from.

    Attributes:
        name: Name and release.
        tasks: The questions, in the benchmark's order.
        definitions: The catalogue; names are unique. ``origin.original_name`` holds the name that
            the benchmark uses where it had to change.
    """

    name: str
    tasks: tuple[Task, ...]
    definitions: tuple[ToolDefinition, ...]
