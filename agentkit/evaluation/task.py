"""``Task``: one question of a benchmark, the tools it offers, and what a right answer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentkit.evaluation.expectations import AllowedCalls, Expectation
from agentkit.messages import JsonObject, Message
from agentkit.metrics import AllowedCall
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class UserTurn:
    """One thing that the user says, and what a right reaction is.

    Attributes:
        request: What the user says.
        expects: What a right answer is; several expectations must all hold, none means that the
            turn is not judged.
        offers: Names of tools that are offered from this turn on, beside the earlier ones.
    """

    request: str
    expects: tuple[Expectation, ...] = ()
    offers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One question.

    Attributes:
        task_id: Its id in the benchmark.
        category: The benchmark's name for this kind of question.
        request: What the user asks.
        offered: Names, in the catalogue, of the tools that the benchmark offers.
        history: Messages before it, oldest first.
        expects: What a right answer is; several expectations must all hold.
        follow_ups: What the user says after that, turn by turn.
        instructions: The system message that belongs to the task.
        start: State that the environment begins with, as the environment understands it.
    """

    task_id: str
    category: str
    request: str
    offered: tuple[str, ...]
    history: tuple[Message, ...] = ()
    expects: tuple[Expectation, ...] = ()
    follow_ups: tuple[UserTurn, ...] = ()
    instructions: str = ""
    start: JsonObject = field(default_factory=dict)

    @property
    def turns(self) -> tuple[UserTurn, ...]:
        """Everything the user says, the request first."""
        first = UserTurn(request=self.request, expects=self.expects, offers=self.offered)
        return (first, *self.follow_ups)

    @property
    def gold(self) -> tuple[AllowedCall, ...]:
        """The gold calls of a question that is judged by allowed values; empty for any other."""
        return tuple(
            call for one in self.expects if isinstance(one, AllowedCalls) for call in one.calls
        )


class Environment(Protocol):
    """The world that the tools of one task act on. Each attempt at a task gets its own."""

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to this world, under the names that the catalogue has for them."""
        ...

    def state(self) -> JsonObject:
        """What can be observed of the world, as JSON data; equal worlds give equal data."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Benchmark:
    """Questions together with the catalogue that they draw their tools from.

    Attributes:
        name: Name and release.
        tasks: The questions, in the benchmark's order.
        definitions: The catalogue; names are unique. ``origin.original_name`` holds the name that
            the benchmark uses where it had to change.
        environment: Makes the world of a task; None when no tool is run, as where only the calls
            are judged.
        left_out: What the source holds beside the tasks, and why it can not be asked or judged.
        adapt: How a library's definition of a tool is changed to be offered here, where questions
            are asked in a way that its schema does not allow for; None: as it is. Adapting twice
            is adapting once, so that a library may come from the catalogue, which is adapted.
    """

    name: str
    tasks: tuple[Task, ...]
    definitions: tuple[ToolDefinition, ...] = ()
    environment: Callable[[Task], Environment] | None = None
    left_out: tuple[LeftOut, ...] = ()
    adapt: Callable[[ToolDefinition], ToolDefinition] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A row of a source that is no task.

    Attributes:
        where: File and line, or the id of the question.
        reason: Why.
    """

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"
