"""From a stored definition of a composite to a tool that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentkit.composites.codec import program_from_json
from agentkit.composites.faults import refusal
from agentkit.composites.interpreter import Composite
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.problems import ContractMode
from agentkit.errors import DefinitionError, SourceProblem
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool, tools_by_name


def composite_tool(
    definition: ToolDefinition,
    tools: Mapping[str, Tool] | Iterable[Tool],
    *,
    limits: CompositeLimits | None = None,
    contracts: ContractMode = "off",
) -> Tool:
    """Bind a composite to the tools that it calls.

    Args:
        definition: With a ``body``, as ``compose`` makes it or a store keeps it.
        tools: The tools of the library: a list, a ``Library``, or a mapping by name; only the
            pinned children are looked at.
        limits: Caps on the program and on each run.
        contracts: When the composite's and its children's pre- and postconditions are checked.

    Returns:
        A tool that runs the program. It needs approval when one of its children does. When a
        child has no function in this process the composite has none either: it can be offered,
        and its calls are deferred.

    Raises:
        CompositeError: The body is no program, or a pinned child is missing or has changed.
        DefinitionError: The definition is that of a primitive.
    """
    if definition.body is None:
        raise DefinitionError(
            f"{definition.name!r} is a primitive: it has code of its own and nothing to bind; "
            "use Tool(definition=..., function=...)",
            tool_name=definition.name,
        )
    tools = tools_by_name(tools)
    problems = tuple(_unfit_children(definition, tools))
    if problems:
        raise refusal(definition.name, problems)
    limits = limits or CompositeLimits()
    children = {child.name: tools[child.name] for child in definition.signature.children}
    program = program_from_json(
        definition.body, tools=children, name=definition.name, limits=limits
    )
    needs_approval = any(child.needs_approval for child in children.values())
    if not all(child.is_bound for child in children.values()):
        return Tool(definition=definition, requires_approval=needs_approval)
    composite = Composite(
        program,
        children,
        name=definition.name,
        limits=limits,
        contracts=contracts,
        definition=definition,
    )
    return Tool(
        definition=definition,
        function=composite,
        is_async=composite.needs_event_loop,
        requires_approval=needs_approval,
    )


def _unfit_children(
    definition: ToolDefinition, tools: Mapping[str, Tool]
) -> Iterator[SourceProblem]:
    for pinned in definition.signature.children:
        child = tools.get(pinned.name)
        if child is None:
            yield SourceProblem(
                code="missing_child",
                message=f"{definition.name!r} calls {pinned.name!r}, which is not in the library",
                advice="Add that tool, or remove the composite.",
            )
        elif child.definition.digest != pinned.digest:
            yield SourceProblem(
                code="changed_child",
                message=(
                    f"{definition.name!r} was validated with {pinned.name!r} at digest "
                    f"{pinned.digest[:12]}, but the library holds {child.definition.digest[:12]}"
                ),
                advice="Validate the composite again with the child as it is now.",
            )
