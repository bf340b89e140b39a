"""A library with its tasks as a taskset of ``verifiers``, for trainers that train on those.

Each rollout's tools are an MCP server with a world of its own. A trace is judged as every rollout
is: our agent makes its calls again in a fresh world, and the task's verifiers look at both.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import verifiers.v1 as vf
from pydantic import Field, TypeAdapter, WithJsonSchema

from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools
from agentkit.evaluation import Benchmark
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.tools.invocation import RunFacts
from agentkit.tools.tool import Tool
from agentkit_training.config.jobs import RewardName, reward_named
from agentkit_training.export.handover import library_of
from agentkit_training.rewards import rewarded
from agentkit_training.rollout.collecting import collect
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training


class LibraryTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Where tasks and texts come from.

    Attributes:
        tasks: The section ``tasks`` of a training configuration.
        part: Which part of them.
        library: An artifact whose texts the tools have; empty for the tasks' own.
        reward: What a rollout is worth.
    """

    tasks: dict[str, Any] = Field(default_factory=dict)
    part: Literal["train", "validation", "test"] = "train"
    library: str = ""
    reward: RewardName = "verdict"


class LibraryTaskData(vf.TaskData):  # type: ignore[misc]
    """A task by its id, with what finds it again in the process of its tools."""

    origin: LibraryTasksetConfig

    def benchmark(self) -> Benchmark:
        """The part of the benchmark with this task alone."""
        found = _part(self.origin)
        return replace(found, tasks=tuple(one for one in found.tasks if one.task_id == self.id))


def _part(origin: LibraryTasksetConfig) -> Benchmark:
    spec = TypeAdapter(TaskSpec).validate_python(origin.tasks)
    return dict(load_tasks_for_training(spec))[origin.part]


class LibraryTools(vf.Toolset[vf.ToolsetConfig, vf.State]):  # type: ignore[misc]
    """The tools that a task offers, bound to a world, under the texts of the library."""

    TOOL_PREFIX = None

    async def setup_task(self, task: LibraryTaskData) -> None:
        """Make the world."""
        benchmark = task.benchmark()
        (one,) = benchmark.tasks
        assert benchmark.environment is not None  # load() takes no others
        texts = library_of(task.origin.library) or Library(benchmark.definitions)
        library = texts.bind(benchmark.environment(one).tools())
        self.tools = tuple(library[name] for name in one.offered)
        self._executor = Executor(
            shared=Execution(), tools=SelectedTools.whole(library), run=RunFacts()
        )

    def register(self, mcp: Any) -> None:
        """Offer the tools."""
        for tool in self.tools:
            mcp.add_tool(self._call(tool), name=tool.name, description=tool.definition.text)

    def _call(self, tool: Tool) -> Any:
        schema = tool.definition.parameters_schema
        required = frozenset(schema.get("required", ()))

        async def call(**arguments: Any) -> str:
            given = {n: one for n, one in arguments.items() if n in required or one is not None}
            made = ToolCall(call_id="call", name=tool.name, arguments=given)
            (result,) = await self._executor.execute((made,))
            return result.text

        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what is offered
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    annotation=Annotated[Any, WithJsonSchema(dict(inner))],
                    default=inspect.Parameter.empty if name in required else None,
                )
                for name, inner in schema.get("properties", {}).items()
            ]
        )
        return call


class _Said:
    """Answers as a trace did, turn by turn, and then with nothing: a ``ChatModel``."""

    name = "trace"

    def __init__(self, trace: Any) -> None:
        self._messages = iter(trace.assistant_messages)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        said = next(self._messages, None)
        if said is None:
            return ModelResponse(message=AssistantMessage())
        calls = tuple(_made(one) for one in said.tool_calls or ())
        return ModelResponse(message=AssistantMessage(text=said.content or "", tool_calls=calls))


def _made(call: Any) -> ToolCall:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(call_id=call.id, name=call.name, arguments={}, malformed=call.arguments)
    return ToolCall(call_id=call.id, name=call.name, arguments=arguments)


class LibraryTask(vf.Task[LibraryTaskData]):  # type: ignore[misc]
    """A question, its tools, and what a trace of it is worth."""

    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:  # noqa: ARG003 - the protocol's
        """One server for each rollout."""
        return [LibraryTools(vf.ToolsetConfig())]

    @vf.reward  # type: ignore[untyped-decorator]
    async def worth(self, trace: vf.Trace) -> Mapping[str, float]:
        """The parts of the reward by name."""
        benchmark, origin = self.data.benchmark(), self.data.origin
        (rollout,) = rewarded(
            await collect(
                _Said(trace),
                benchmark,
                library=library_of(origin.library),
                attempts=1,
                temperature=0,
            ),
            reward_named(origin.reward, benchmark),
        )
        return dict(rollout.reward_parts)


class LibraryTaskset(vf.Taskset[LibraryTask, LibraryTasksetConfig]):  # type: ignore[misc]
    """The questions of a part that are asked once, with tools that run."""

    def load(self) -> Iterator[LibraryTask]:
        """The tasks, in the benchmark's order."""
        benchmark = _part(self.config)
        for task in benchmark.tasks if benchmark.environment else ():
            if len(task.turns) == 1 and not task.history:
                data = LibraryTaskData(id=task.task_id, prompt=task.request, origin=self.config)
                yield LibraryTask(data, self.config.task)


if __name__ == "__main__":  # as verifiers starts a server of tools
    LibraryTools.run()
