"""``Task``: one question of a benchmark, the tools it offers, and what a right answer is."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Protocol

from agentkit.errors import UsageError
from agentkit.evaluation.expectations import AllowedCalls, Expectation
from agentkit.library import Library, LibraryChange, ToolStore
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
        """The observable state of the world, as JSON data; equal worlds give equal data."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Benchmark:
    """Questions together with the catalogue that they draw their tools from.

    Attributes:
        name: Name and release.
        tasks: The questions, in the benchmark's order.
        definitions: The catalogue; names are unique. ``origin.original_name`` holds the name that
            the benchmark uses where it had to change.
        environment: Creates the world of a task; None when no tool is run, as where only the calls
            are judged.
        left_out: What the source holds beside the tasks, and why it cannot be asked or judged.
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
    """A row of a source that is not a task.

    Attributes:
        where: File and line, or the id of the question.
        reason: Why.
    """

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


def stratified(tasks: Iterable[Task], size: int, *, seed: int = 0) -> tuple[Task, ...]:
    """A sample with equally many tasks of each category, as far as there are enough.

    Categories take turns, in an order that changes from round to round, so that any prefix of the
    sample is spread over them as well: a run that is cut short by its time budget stays fair.

    Args:
        tasks: What to choose from.
        size: How many to take; all when there are fewer.
        seed: Makes the choice; it does not depend on the order of categories.

    Example:
        >>> tasks = [
        ...     Task(task_id=f"{category}{n}", category=category, request="?", offered=())
        ...     for category in ("a", "b")
        ...     for n in range(10)
        ... ]
        >>> sorted(task.category for task in stratified(tasks, 6))
        ['a', 'a', 'a', 'b', 'b', 'b']
    """
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.category, []).append(task)
    shuffled = [_shuffled(groups[category], f"{seed}/{category}") for category in sorted(groups)]
    rounds = [[task for task in one if task is not None] for one in zip_longest(*shuffled)]
    mixed = [_shuffled(one, f"{seed}/{number}") for number, one in enumerate(rounds)]
    return tuple(chain.from_iterable(mixed))[:size]


def _shuffled(tasks: list[Task], seed: str) -> list[Task]:
    # A sample for people to repeat, not a secret.
    return random.Random(seed).sample(tasks, len(tasks))  # noqa: S311 - see above


def import_catalogue(store: ToolStore, benchmark: Benchmark) -> Library:
    """Commit the benchmark's definitions that the store does not hold yet.

    Definitions of an earlier release of the same source are replaced; other tools in the library
    are left alone. When everything is there already, no new version is made.

    Returns:
        The newest library.

    Raises:
        UsageError: The library holds a tool of the same name from elsewhere.
        StaleVersionError: Another writer was faster.
    """
    library = store.load()
    upserts = tuple(d for d in benchmark.definitions if not _is_held(d, library))
    if not upserts:
        return library
    change = LibraryChange(
        proposal_id=f"import-{uuid.uuid4().hex}",
        upserts=upserts,
        author="agentkit",
        reason=f"import the catalogue of {benchmark.name}",
    )
    store.commit(change, expected_version=library.version)
    return store.load()


def _is_held(definition: ToolDefinition, library: Library) -> bool:
    known = library.get(definition.name)
    if known is None:
        return False
    if known.definition.digest == definition.digest:
        return True
    source, other = definition.origin.reference, known.definition.origin.reference
    if source.partition(" ")[0] != other.partition(" ")[0]:
        raise UsageError(
            f"the library already holds another tool named {definition.name!r} "
            f"(from {other or known.definition.origin.kind}); give the benchmark a store of its own"
        )
    return False
