"""Linking: a composite that came as data runs on the code of the tools that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agentkit import composites
from agentkit.errors import CompositeError, SourceProblem
from agentkit.library.dag import Dag, in_order
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.composites.problems import CompositeLimits, ContractMode

Refusals = dict[str, tuple[SourceProblem, ...]]


def link_composites(
    tools: Mapping[str, Tool],
    dag: Dag,
    *,
    limits: CompositeLimits | None = None,
    contracts: ContractMode | None = None,
) -> tuple[dict[str, Tool], Refusals]:
    """Every composite among ``tools`` with the code of its children, as far as that can be.

    Args:
        tools: All tools by name.
        dag: What calls what among them.
        limits: See ``agentkit.library.library.link``.
        contracts: Likewise.

    Returns:
        The composites by name; and for each that has no code why that is so.
    """
    current = dict(tools)
    refused: Refusals = {}
    rest = {name: None for name in dag.composites if _follows_its_children(current[name])}
    for name in in_order(rest, dag.children):
        del rest[name]
        try:
            current[name] = _bound(current[name], current, limits, contracts)
        except CompositeError as error:
            current[name], refused[name] = _unbound(current[name]), error.problems
        else:
            if not current[name].is_bound:
                refused[name] = tuple(_waiting_for(name, dag.children[name], current, refused))
    for name in rest:
        current[name], refused[name] = _unbound(current[name]), (_circular(name, dag),)
    return {name: current[name] for name in dag.composites}, refused


def _follows_its_children(tool: Tool) -> bool:
    """Whether its code is that of its children, and not a caller's own."""
    return tool.function is None or isinstance(tool.function, composites.Composite)


def _bound(
    tool: Tool,
    tools: Mapping[str, Tool],
    limits: CompositeLimits | None,
    contracts: ContractMode | None,
) -> Tool:
    if isinstance(tool.function, composites.Composite):
        limits = limits or tool.function.limits
        contracts = contracts or tool.function.contracts
    made = composites.composite_tool(
        tool.definition, tools, limits=limits, contracts=contracts or "off"
    )
    return replace(
        tool,
        function=made.function,
        is_async=made.is_async,
        requires_approval=made.needs_approval or tool.needs_approval,
    )


def _unbound(tool: Tool) -> Tool:
    return replace(tool, function=None, is_async=False)


def _waiting_for(
    name: str, children: Iterable[str], tools: Mapping[str, Tool], refused: Refusals
) -> Iterator[SourceProblem]:
    for child in children:
        if child in refused:
            reason = refused[child][0]
            message = f"{name!r} calls {child!r}, which can not run: {reason.message}"
            yield SourceProblem(code=reason.code, message=message, advice=reason.advice)
        elif not tools[child].is_bound:
            yield SourceProblem(
                code="unbound_child",
                message=f"{name!r} calls {child!r}, which has no function in this process",
                advice=f"Bind it: library.bind({{{child!r}: function}}).",
            )


def _circular(name: str, dag: Dag) -> SourceProblem:
    return SourceProblem(
        code="recursive_call",
        message=dag.why_unknown(name),
        advice="Rewrite one of the composites in the circle so that it does not call the next.",
    )
