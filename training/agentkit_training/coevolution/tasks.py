"""Which tasks a step tries: the same in every repetition, whatever was done before."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task import Environment
from agentkit.evolution.proposers.blocks import OPENING
from agentkit.library import Library
from agentkit.library.dag import descendants
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects
from agentkit.tools.tool import Tool
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.rollout.samples import Rollout

_WARM_UP = 1 << 61  # far from the seeds of any step


def step_count(tasks: Sequence[Task], settings: CoevolutionSettings) -> int:
    """How many steps a run has: those asked for, or as many as its epochs come to."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * _steps_per_epoch(tasks, settings)


def step_tasks(
    tasks: Sequence[Task], settings: CoevolutionSettings, *, step: int
) -> tuple[Task, ...]:
    """The tasks of a step.

    Each epoch goes through all tasks in an order of its own, which depends on the seed and the
    epoch alone. Its last step may have fewer.

    Args:
        tasks: All of them.
        settings: Seed and tasks a step.
        step: From 0.

    Raises:
        UsageError: There are no tasks.
    """
    if not tasks:
        raise UsageError("there are no tasks to train on")
    epoch, place = divmod(step, _steps_per_epoch(tasks, settings))
    order = list(tasks)
    random.Random(f"{settings.seed}:{epoch}").shuffle(order)  # noqa: S311 - no secret
    size = settings.tasks_per_step
    return tuple(order[place * size : (place + 1) * size])


def step_seed(settings: CoevolutionSettings, *, step: int) -> int:
    """The seed of a step's first attempt; each further attempt has the next one.

    No two steps of a run share one, and neither do runs whose seeds differ, up to a million
    attempts at a task.

    Args:
        settings: Seed and attempts.
        step: From 0.
    """
    return settings.seed * 1_000_000 + step * settings.group_size


def warm_up_seed(settings: CoevolutionSettings) -> int:
    """The seed of the first attempt at the seed tasks, which a step may try again: none of theirs.

    Args:
        settings: The seed.
    """
    return settings.seed * 1_000_000 + _WARM_UP


def _steps_per_epoch(tasks: Sequence[Task], settings: CoevolutionSettings) -> int:
    return math.ceil(len(tasks) / settings.tasks_per_step)


def with_composites(benchmark: Benchmark, library: Library) -> Benchmark:
    """The benchmark whose tasks also offer the composites of a library, and whose worlds run them.

    A task gets every composite whose primitives it offers, in the library's order. In a world a
    composite runs on that world's own tools, so that what it does there can be judged. Where no
    tool is run, as in benchmarks of single calls, composites could not be judged and are left out.

    Args:
        benchmark: The tasks. Their expectations must not name the calls to make, or a composite in
            the place of several calls is judged wrong: ask for an answer or a final state.
        library: Where the composites are.
    """
    made_of, make = _primitives(library), benchmark.environment
    if not made_of or make is None:
        return benchmark
    return replace(
        benchmark,
        tasks=tuple(_with_offers(task, made_of) for task in benchmark.tasks),
        environment=lambda task: _World(world=make(task), library=library),
    )


def pure_tools(benchmark: Benchmark) -> tuple[Tool, ...]:
    """The tools of a benchmark that touch no world, with code: composites are tried out on them.

    They run in a world of the first task, which is thrown away. None where no tool is run.

    Args:
        benchmark: The tasks.
    """
    if benchmark.environment is None or not benchmark.tasks:
        return ()
    tools = benchmark.environment(benchmark.tasks[0]).tools()
    return tuple(one for one in tools if one.definition.signature.effects == Effects.pure())


def _primitives(library: Library) -> dict[str, frozenset[str]]:
    """The primitives below each composite that can be run."""
    composites = [tool.name for tool in library if tool.definition.is_composite]
    below = {name: descendants(library, name) for name in composites}
    return {
        name: frozenset(one for one in found if not library[one].definition.is_composite)
        for name, found in below.items()
        if all(one in library for one in found)
    }


def _with_offers(task: Task, made_of: Mapping[str, frozenset[str]]) -> Task:
    offered = frozenset(task.offered)
    more = [name for name, needs in made_of.items() if needs <= offered and name not in offered]
    return replace(task, offered=(*task.offered, *more)) if more else task


@dataclass(frozen=True, kw_only=True, slots=True)
class _World:
    world: Environment
    library: Library

    def tools(self) -> Sequence[Tool]:
        """The world's tools, and the composites bound to them."""
        own = list(self.world.tools())
        bound = self.library.bind([tool for tool in own if tool.name in self.library])
        names = {tool.name for tool in own}
        return [*own, *(t for t in bound if t.definition.is_composite and t.name not in names)]

    def state(self) -> JsonObject:
        """That of the world."""
        return self.world.state()


BLOCK_PROMPT = """\
If the text of a function left out something that you had to know to call it right, add one block \
of this form after your answer, about that function only: it is the one thing that may stand \
beside the answer. Otherwise write no block:
<description>
Tool Name: name of the function
Tool Description: what it does, in one sentence
Required Parameters:
parameter(type): what it means and which values it takes
</description>"""
"""Asks for the labelled form of ToolDNA's figure 3. The JSON form, which feedback models are asked
for, would be taken for a call: where tools are in the prompt, an object that names a tool and has
parameters is one."""


def block_count(rollout: Rollout) -> int:
    """How many of a rollout's answers hold the beginning of a block."""
    turns = (turn for episode in rollout.episodes for turn in episode.turns)
    return sum(OPENING in turn.message.text for turn in turns)
