"""What is to be written, before anybody writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.evolution.insertion.outcome import Added, InsertOutcome, Merged, Rejected
from agentkit.library.dag import depth, flat_size
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """The candidate is to be added.

    Attributes:
        tool: The candidate; a primitive with its code.
        revised: Whether it takes the place of another revision.
        repinned: Composites above it, pinned to the new revision.
    """

    tool: Tool
    revised: bool = False
    repinned: tuple[ToolDefinition, ...] = ()

    @property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that change, children before parents."""
        return (self.tool.definition, *self.repinned)


@dataclass(frozen=True, kw_only=True, slots=True)
class Merger:
    """The candidate's examples are to move to a tool that does the same.

    Attributes:
        into: That tool, with the examples.
        moved: How many are new to it.
        parameters: For each parameter of the candidate, the one of the tool that it means.
        reason: What showed that they are the same.
        repinned: Composites above it, pinned to the new revision.
        is_itself: Whether the tool is the candidate, to the last example.
    """

    into: ToolDefinition
    moved: int
    parameters: Mapping[str, str]
    reason: str
    repinned: tuple[ToolDefinition, ...] = ()
    is_itself: bool = False

    @property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that change, children before parents."""
        return (self.into, *self.repinned) if self.moved else ()


Decision: TypeAlias = Addition | Merger | Rejected


def told(decision: Addition | Merger, library: Library) -> InsertOutcome:
    """What a decision came to, told of the library that holds it."""
    above = tuple(definition.name for definition in decision.repinned)
    if isinstance(decision, Merger):
        return Merged(
            into=decision.into.name,
            definition=decision.into,
            version=library.version,
            examples_moved=decision.moved,
            parameters=dict(decision.parameters),
            reason=decision.reason,
            repinned=above,
        )
    name = decision.tool.name
    return Added(
        definition=decision.tool.definition,
        version=library.version,
        depth=depth(library, name),
        flat_size=flat_size(library, name),
        revised=decision.revised,
        repinned=above,
    )
