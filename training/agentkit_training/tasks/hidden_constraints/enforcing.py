"""``HiddenWorld``: runs the tools, refuses calls that break a demand, and keeps those it took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from agentkit.errors import ModelRetry
from agentkit.messages import JsonObject
from agentkit.tools.rules import rule_sentence
from agentkit.tools.tool import Tool
from agentkit_training.tasks.hidden_constraints.catalogue import TOOLS
from agentkit_training.tasks.hidden_constraints.constraints import Accepted
from agentkit_training.tasks.hidden_constraints.hidden_tool import World
from agentkit_training.tasks.hidden_constraints.lookups import LOOKUPS, looked_up

Says: TypeAlias = Literal["nothing", "rule"]
"""What a refusal tells beyond the fact: nothing more, or the demand in a sentence."""

REFUSED = "The call was refused."


class HiddenWorld:
    """One attempt's world, an ``Environment`` of ``agentkit.evaluation``.

    Args:
        names: The tools in it.
        world: Which demands hold.
        says: What a refusal tells.

    Example:
        >>> world = HiddenWorld(["request_loan"], "first")
        >>> world.refusal("request_loan", {"amount": 5000, "term": 4})
        'The call was refused. term must be one of 36, 48, 60.'
        >>> world.refusal("request_loan", {"amount": 5000, "term": 48})
        ''
    """

    def __init__(self, names: Iterable[str], world: World, says: Says = "rule") -> None:
        self._names = tuple(names)
        self._world = world
        self._says = says
        self._taken: list[Accepted] = []

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to this world, under their plain definitions."""
        return tuple(self._tool(name) for name in self._names)

    def state(self) -> JsonObject:
        """The calls that were taken, in an order that does not tell when."""
        taken = [
            {"tool": one.tool, "arguments": dict(one.arguments)}
            for one in self._taken
            if one.tool not in LOOKUPS
        ]
        return {"taken": sorted(taken, key=lambda one: json.dumps(one, sort_keys=True))}

    def refusal(self, name: str, arguments: JsonObject) -> str:
        """What the world says to a call that fits the contract; empty when it takes it.

        Args:
            name: The tool.
            arguments: Its arguments.
        """
        if name in LOOKUPS:
            return ""
        demand = TOOLS[name].demands[self._world]
        if demand.takes(arguments, self._taken):
            return ""
        return f"{REFUSED} {rule_sentence(demand.rule)}" if self._says == "rule" else REFUSED

    def _tool(self, name: str) -> Tool:
        definition = LOOKUPS[name] if name in LOOKUPS else TOOLS[name].definition

        def call(**arguments: Any) -> str:
            refusal = self.refusal(name, arguments)
            if refusal:
                raise ModelRetry(refusal)
            told = looked_up(name, arguments["name"]) if name in LOOKUPS else ""
            self._taken.append(Accepted(tool=name, arguments=arguments, told=told))
            return told or "done"

        return Tool(definition=definition, function=call)
