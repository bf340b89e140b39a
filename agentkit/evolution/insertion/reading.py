"""From what was handed in to a definition whose place in the library is sound.

Everything here is static: nothing runs.
"""

from __future__ import annotations

from typing import TypeAlias

from agentkit.composites.codec import program_from_json
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CompositeError
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.refusal import REJECTION_OF_FAULT, Refused, refuse, refuse_source
from agentkit.evolution.insertion.wellformed import check_data
from agentkit.library.library import Library
from agentkit.library.soundness import library_faults
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

Candidate: TypeAlias = str | ToolDefinition | Tool
"""The text of one function, a definition with a program, or a tool with code of its own."""


def read_candidate(
    candidate: Candidate, library: Library, *, policy: InsertPolicy, limits: CompositeLimits
) -> Tool:
    """The candidate as a tool; a composite has no function yet.

    Raises:
        Refused: It is outside the language, or does not fit its children.
    """
    if isinstance(candidate, str):
        try:
            definition = compose(candidate, library.tools, limits=limits)
        except CompositeError as error:
            raise refuse_source(error.tool_name or "", error.problems) from error
        if not definition.signature.children:
            raise _without_children(definition.name)
        _check_grounded(definition, library)
        return Tool(definition=definition)
    tool = candidate if isinstance(candidate, Tool) else Tool(definition=candidate)
    check_data(tool.definition, policy)
    if tool.definition.is_composite:
        check_composite(tool.definition, library, limits)
        _check_grounded(tool.definition, library)
        return Tool(definition=tool.definition)
    _check_primitive(tool, policy)
    return tool


def _without_children(name: str) -> Refused:
    return refuse(
        "childless",
        name,
        f"{name!r} calls no tool, so it is no composite",
        "call at least one tool of the library; a primitive is code, which a person adds",
    )


def _check_primitive(tool: Tool, policy: InsertPolicy) -> None:
    if policy.allow_primitives and tool.is_bound:
        return
    if policy.allow_primitives:
        explanation = f"{tool.name!r} calls no tool and has no code in this process"
        advice = "give a Tool made from a function, for instance with @tool"
    else:
        explanation = f"{tool.name!r} calls no tool, so it would be a primitive"
        advice = (
            "primitives are code, which a person adds: agentkit tools add, ToolManager.register, "
            "or InsertPolicy(allow_primitives=True)"
        )
    raise refuse("childless", tool.name, explanation, advice)


def check_composite(definition: ToolDefinition, library: Library, limits: CompositeLimits) -> None:
    """What ``compose`` guarantees for text, for a definition that came as data.

    Raises:
        Refused: Its program is outside the language or does not fit its children, or its
            signature is not what follows from them.
    """
    name = definition.name
    try:
        program_from_json(definition.body or {}, name=name, limits=limits)
    except CompositeError as error:
        raise refuse_source(name, error.problems) from error
    with_candidate = library.with_tools([definition])
    if not with_candidate.dag.children[name]:
        raise _without_children(name)
    for fault in library_faults(with_candidate, [name]):
        code = REJECTION_OF_FAULT.get(fault.code, "outside_language")
        raise refuse(code, name, fault.message, f"{fault.advice}; or hand in its text")


def _check_grounded(definition: ToolDefinition, library: Library) -> None:
    """Everything below the candidate is there, and ends in primitives."""
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            explanation = library.dag.why_unknown(child.name)
            advice = "repair the library first; agentkit check lists what is wrong"
            raise refuse("broken_child", definition.name, explanation, advice)
