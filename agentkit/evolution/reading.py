"""From what was handed in to a definition whose place in the library is sound.

Everything here is static: nothing runs.
"""

from __future__ import annotations

from typing import TypeAlias

from agentkit.errors import CompositeError
from agentkit.evolution.policy import InsertPolicy
from agentkit.evolution.refusal import Refused, refuse, refuse_source
from agentkit.library.library import Library
from agentkit.tools.composite import ir
from agentkit.tools.composite.checks import check_program
from agentkit.tools.composite.codec import program_from_json
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.composite.parser import parse_expression
from agentkit.tools.composite.source import compose
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
        Refused: Its program is outside the language or does not fit its children.
    """
    name = definition.name
    try:
        program = program_from_json(definition.body or {})
        _check_children(definition, program, library)
        problems = check_program(program, library.tools, name=name, limits=limits)
        if problems:
            raise refuse_source(name, problems)
    except CompositeError as error:
        raise refuse_source(name, error.problems) from error
    _check_parameters(definition, program)
    check_contract(definition, limits)


def _check_children(definition: ToolDefinition, program: ir.Program, library: Library) -> None:
    name = definition.name
    called = list(dict.fromkeys(call.child for call in ir.calls(program)))
    if not called:
        raise _without_children(name)
    if name in called:
        advice = "write it with a loop, or call another tool"
        raise refuse("cycle", name, f"{name!r} calls itself", advice)
    pinned = {child.name: child.digest for child in definition.signature.children}
    if set(called) != set(pinned):
        explanation = f"{name!r} calls {_listed(called)}, but declares {_listed(pinned)}"
        advice = "declare exactly the tools that the program calls, or hand in its text"
        raise refuse("children_mismatch", name, explanation, advice)
    for child in called:
        known = library.get(child)
        if known is None:
            explanation = f"{name!r} calls {child!r}, which the library does not hold"
            nearest = library.nearest(child)
            advice = f"nearest names: {_listed(nearest)}" if nearest else "add that tool first"
            raise refuse("unknown_child", name, explanation, advice)
        if known.definition.digest != pinned[child]:
            explanation = (
                f"{name!r} is pinned to {child!r} {pinned[child][:12]}, but the library holds "
                f"{known.definition.digest[:12]}"
            )
            advice = "compose it again from its text against this library"
            raise refuse("changed_child", name, explanation, advice)


def _check_grounded(definition: ToolDefinition, library: Library) -> None:
    """Everything below the candidate is there, and ends in primitives."""
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            explanation = library.dag.why_unknown(child.name)
            advice = "repair the library first; agentkit tools check lists what is wrong"
            raise refuse("broken_child", definition.name, explanation, advice)


def _check_parameters(definition: ToolDefinition, program: ir.Program) -> None:
    declared, taken = set(definition.signature.properties), {p.name for p in program.parameters}
    if declared != taken:
        explanation = (
            f"the signature of {definition.name!r} has the parameters {_listed(declared)}, its "
            f"program takes {_listed(taken)}"
        )
        advice = "give both the same parameters, or hand in its text"
        raise refuse("type_mismatch", definition.name, explanation, advice)


def check_contract(definition: ToolDefinition, limits: CompositeLimits) -> None:
    """Every condition is an expression over the parameters, and ``result`` afterwards.

    Raises:
        Refused: One is not.
    """
    names = tuple(definition.signature.properties)
    conditions = definition.specification
    spoken = [(text, names) for text in conditions.pre]
    spoken += [(text, (*names, "result")) for text in conditions.post]
    for text, known in spoken:
        try:
            parse_expression(text, known, limits=limits)
        except CompositeError as error:
            first = error.problems[0]
            explanation = f"the condition {text!r} of {definition.name!r}: {first.message}"
            raise refuse(
                "bad_contract", definition.name, explanation, first.advice, problems=error.problems
            ) from error


def _listed(names: object) -> str:
    found = sorted(map(str, names)) if isinstance(names, set | dict) else list(map(str, names))  # type: ignore[call-overload]
    return ", ".join(map(repr, found)) or "none"
