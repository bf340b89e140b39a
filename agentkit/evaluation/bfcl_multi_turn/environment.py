"""``BfclEnvironment``: the simulators of one attempt, with their tools bound."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Any

from agentkit.errors import DatasetError, ToolFailed
from agentkit.evaluation.bfcl_multi_turn.bounds import refusal
from agentkit.evaluation.bfcl_multi_turn.encoding import response_text
from agentkit.evaluation.bfcl_multi_turn.observing import observed
from agentkit.evaluation.bfcl_multi_turn.simulators import SimulatorModules
from agentkit.evaluation.task import Task
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

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

    The simulators are loaded when the first environment needs them.

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

    def instance(self, name: str, start: JsonObject) -> object:
        """A simulator at its start."""
        with self.modules.lock:
            made = getattr(self.modules.load(self.simulators[name].module), name)()
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

    def __post_init__(self) -> None:
        self._instances = {
            name: self.worlds.instance(name, self.start) for name in self.start["classes"]
        }

    def tools(self) -> Sequence[Tool]:
        """The tools of all simulators, bound to this attempt's instances.

        A result is the text that upstream shows. The definitions say that each tool writes, which
        makes the executor keep the order of the calls of one step, as upstream does.
        """
        return [
            Tool(
                definition=definition,
                function=self._bound(definition.name, getattr(instance, definition.name)),
            )
            for name, instance in self._instances.items()
            for definition in self.worlds.simulators[name].definitions
        ]

    def state(self) -> JsonObject:
        """The public attributes of each simulator, by class."""
        with self.worlds.modules.lock:
            return {name: observed(instance) for name, instance in self._instances.items()}

    def _bound(self, tool: str, method: Callable[..., object]) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            return self._answer(tool, method, arguments)

        return call

    def _answer(self, tool: str, method: Callable[..., object], arguments: JsonObject) -> str:
        refused = refusal(tool, arguments)
        if refused is not None:
            raise ToolFailed(refused)
        with self.worlds.modules.lock, localcontext():  # some tools set the decimal precision
            return response_text(method(**copy.deepcopy(arguments)))
