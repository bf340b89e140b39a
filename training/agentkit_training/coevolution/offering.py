"""Composites before a policy: offered with the tasks that offer what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task import Environment
from agentkit.library import Library
from agentkit.library.dag import descendants
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects
from agentkit.tools.tool import Tool


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
    made_of = _primitives(library)
    if not made_of or benchmark.environment is None:
        return benchmark
    return replace(
        benchmark,
        tasks=tuple(_with_offers(task, made_of) for task in benchmark.tasks),
        environment=_Worlds(make=benchmark.environment, library=library),
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
class _Worlds:
    """Makes worlds whose tools include the composites of a library."""

    make: Callable[[Task], Environment]
    library: Library

    def __call__(self, task: Task) -> Environment:
        return _World(world=self.make(task), library=self.library)


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
