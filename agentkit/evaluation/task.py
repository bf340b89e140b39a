"""``Task``: one question of a benchmark, the tools it offers, and what a right answer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.messages import Message
from agentkit.tools.definition import ToolDefinition

Expectation = Literal[
    "calls",  # the gold calls, all of them and no others
    "any_call",  # at least one call; there is no gold call to compare with
    "no_call",  # none of the offered tools fits, so the right answer is words
]


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldCall:
    """One call that a right answer makes.

    Attributes:
        name: The tool's name in the benchmark's catalogue.
        allowed: Accepted values by parameter. An empty string among them means that the parameter
            may be left out.
    """

    name: str
    allowed: Mapping[str, Sequence[Any]] = field(default_factory=dict)


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
        gold: The calls of a right answer; empty unless ``expects`` is ``"calls"``.
    """

    task_id: str
    category: str
    request: str
    offered: tuple[str, ...]
    history: tuple[Message, ...] = ()
    expects: Expectation = "calls"
    gold: tuple[GoldCall, ...] = ()


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
