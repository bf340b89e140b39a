"""Recorded calls of children, kept as their worked calls.

A composite whose children touch the world can not be tried out by calling them. InsertTool
answers them from their worked calls, so what the episodes recorded of them has to be there first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentkit.evolution.mining.candidates import MinedComposite
from agentkit.evolution.policy import InsertPolicy
from agentkit.evolution.stubs import runs_live, same_call
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.tools.definition import ChildReference, Example, ToolDefinition


def with_recordings(
    library: Library,
    composites: Iterable[MinedComposite],
    *,
    policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
) -> tuple[ToolDefinition, ...]:
    """Definitions of primitives with the recorded calls that the composites' worked calls need.

    Tools that may run while a candidate is tried out need none. Composites above a changed
    definition come along, pinned to it.

    Args:
        library: The library that the composites are proposed for.
        composites: What mining found.
        policy: Which tools may run, and how many worked calls a tool keeps.

    Returns:
        Only what differs from the library; children before parents.
    """
    wanted: dict[str, list[Example]] = {}
    for composite in composites:
        for name, examples in composite.child_examples.items():
            wanted.setdefault(name, []).extend(examples)
    changed: list[ToolDefinition] = []
    for name, recorded in wanted.items():
        tool = library.get(name)
        if tool is None or tool.definition.is_composite or runs_live(tool.definition, policy):
            continue
        definition = _extended(tool.definition, recorded, policy.most_examples)
        if definition != tool.definition:
            changed.append(definition)
    return repinned(library, changed)


def _extended(definition: ToolDefinition, examples: Iterable[Example], most: int) -> ToolDefinition:
    known = list(definition.examples)
    for example in examples:
        if len(known) < most and not any(
            same_call(definition, example.arguments, other.arguments) for other in known
        ):
            known.append(example)
    return replace(definition, examples=tuple(known))


def pinned_to(composite: MinedComposite, tools: Mapping[str, ToolDefinition]) -> ToolDefinition:
    """The definition of a mined composite, pinned to its children as a library holds them now."""
    signature = composite.definition.signature
    children = tuple(_pin(child, tools) for child in signature.children)
    return replace(composite.definition, signature=replace(signature, children=children))


def _pin(child: ChildReference, tools: Mapping[str, ToolDefinition]) -> ChildReference:
    known = tools.get(child.name)
    return child if known is None else ChildReference(name=child.name, digest=known.digest)
