"""What a tool is looked for: typed sub-goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentkit.tools.types.fit import TypedSlot


@dataclass(frozen=True, kw_only=True, slots=True)
class SubGoal:
    """What a tool is looked for: one step of what the user asked.

    Attributes:
        intent: The step in words; the whole query when nobody split it.
        argument_names: Names of arguments that the step's tool probably takes. A planner model
            that guesses them helps retrieval more than one that guesses types.
        inputs: What the step has to work with; empty when unknown, which changes nothing.
        output: What the step has to give; None when unknown.
    """

    intent: str
    argument_names: tuple[str, ...] = ()
    inputs: tuple[TypedSlot, ...] = ()
    output: TypedSlot | None = None
