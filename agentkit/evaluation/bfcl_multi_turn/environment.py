"""``BfclEnvironment``: the simulators of one attempt, with their tools bound."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Any

from agentkit.errors import DatasetError, ToolFailed
from agentkit.evaluation.bfcl_multi_turn.bounds import refusal
from agentkit.evaluation.bfcl_multi_turn.encoding import result_of
from agentkit.evaluation.bfcl_multi_turn.observing import observed
from agentkit.evaluation.bfcl_multi_turn.simulators import SimulatorModules
from agentkit.evaluation.task import Task
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

TAKE_TURNS = frozenset({"MathAPI", "VehicleControlAPI"})
"""Classes of which no two tools may run at the same time, for they use something that all share:
the precision of ``mpmath``, and a table of the weather that is changed and then returned."""

LONG_CONTEXT = "multi_turn_long_context"
"""The category whose simulators start with far more data than the question needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulator:
    """A class that simulates tools, and what its tools look like.

    Attributes:
        module: The module that it is in.
        definitions: Its tools. Methods without a definition are not offered.
    """

    module: str
    definitions: tuple[ToolDefinition, ...]


@dataclass(frozen=True, kw_only=True)
class BfclWorlds:
    """Makes the environment of a task; this is the ``environment`` of the benchmark.

    Attributes:
        modules: Where the simulated classes come from.
        simulators: Them, by class name.
    """

    modules: SimulatorModules
    simulators: Mapping[str, Simulator]

    def __call__(self, task: Task) -> BfclEnvironment:
        """A fresh environment, at the start of the task.

        Raises:
            DatasetError: A simulator can not be loaded, or not be brought to this start.
            MissingExtraError: A simulator needs a package that is not installed.
        """
        return BfclEnvironment(worlds=self, start=task.start)

    def load(self, names: Iterable[str]) -> None:
        """Load these simulators now, so that what is missing is told before anything is asked.

        Raises:
            DatasetError: A simulator can not be loaded, or lacks a tool that is described.
            MissingExtraError: A simulator needs a package that is not installed.
        """
        for name in names:
            simulated = self._class(name)
            described = self.simulators[name].definitions
            lacking = [one.name for one in described if not hasattr(simulated, one.name)]
            if lacking:
                raise DatasetError(
                    f"the simulator {name} has no method for the tools {lacking}; definitions and "
                    "simulators are not of the same release"
                )

    def instance(self, name: str, start: JsonObject) -> object:
        """A simulator at its start."""
        with self.modules.lock:
            made = self._class(name)()
            load = getattr(made, "_load_scenario", None)
            if load is None:  # stateless, as MathAPI is
                return made
            scenario = copy.deepcopy(start["scenarios"].get(name, {}))
            try:
                load(scenario, long_context=start["long_context"])
            except Exception as error:
                raise DatasetError(
                    f"the simulator {name} does not take the start of the question: "
                    f"{type(error).__name__}: {error}"
                ) from error
            # Some tables of the module end up inside: without a copy, attempts would share them.
            vars(made).update(copy.deepcopy(vars(made)))
            return made

    def _class(self, name: str) -> Callable[[], object]:
        module = self.simulators[name].module
        simulated: Callable[[], object] | None = getattr(self.modules.load(module), name, None)
        if simulated is None:
            raise DatasetError(f"the module {module} of the simulators has no class {name}")
        return simulated


@dataclass(kw_only=True)
class BfclEnvironment:
    """The world of one attempt at one task.

    Attributes:
        worlds: Where its simulators come from.
        start: ``classes``, ``scenarios`` by class and ``long_context``, as the loader writes it.
    """

    worlds: BfclWorlds
    start: JsonObject
    _instances: dict[str, object] = field(init=False)
    _owners: dict[str, str] = field(init=False)
    _tools: tuple[Tool, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._instances = {
            name: self.worlds.instance(name, self.start) for name in self.start["classes"]
        }
        self._owners = {
            definition.name: name
            for name in self._instances
            for definition in self.worlds.simulators[name].definitions
        }
        self._tools = tuple(
            Tool(definition=definition, function=self._bound(definition.name), is_async=True)
            for name in self._instances
            for definition in self.worlds.simulators[name].definitions
        )

    def tools(self) -> Sequence[Tool]:
        """The tools of all simulators, bound to this attempt's instances.

        Calls of one step take effect in the model's order, as upstream has it. The definitions
        say so to an executor (each writes), and since a call takes microseconds it is made without
        a thread of its own, so that none overtakes another under other definitions either.
        """
        return self._tools

    def state(self) -> JsonObject:
        """The public attributes of each simulator, by class."""
        return {name: observed(instance) for name, instance in self._instances.items()}

    def call(self, tool: str, arguments: JsonObject) -> Any:
        """Call a tool, and what upstream shows as its result (``result_of``).

        Args:
            tool: Its name.
            arguments: By name; they are copied.

        Raises:
            KeyError: No simulator of this world has the tool.
            ToolFailed: The call would never end (``agentkit.evaluation.bfcl_multi_turn.bounds``).
            Exception: Whatever the simulator raises.
        """
        name = self._owners[tool]
        instance = self._instances[name]
        refused = refusal(tool, arguments, instance)
        if refused is not None:
            raise ToolFailed(refused)
        method: Callable[..., object] = getattr(instance, tool)
        turn = self.worlds.modules.lock if name in TAKE_TURNS else nullcontext()
        with turn, localcontext():  # some tools set the precision of decimals
            return result_of(method(**copy.deepcopy(arguments)))

    def _bound(self, tool: str) -> Callable[..., Awaitable[Any]]:
        async def call(**arguments: Any) -> Any:
            return self.call(tool, arguments)

        return call
