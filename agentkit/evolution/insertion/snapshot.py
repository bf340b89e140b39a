"""One version of a library as the Tool Manager knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentkit.errors import UsageError
from agentkit.evolution.insertion.decision import Addition, Merger
from agentkit.evolution.insertion.index import ToolIndex
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What a candidate is judged against.

    Attributes:
        library: With the code of its primitives; its composites are not linked, because judging
            a candidate links what it needs over stubs.
        index: Of that library.
    """

    library: Library
    index: ToolIndex

    @classmethod
    def of(cls, stored: Library, code: Mapping[str, Tool]) -> Snapshot:
        """The snapshot of a library from a store.

        Raises:
            UsageError: The parameters of a tool in code differ from those in the library.
        """
        bound = [
            _with_code(stored[name].definition, tool)
            for name, tool in code.items()
            if name in stored
        ]
        return cls(library=stored.with_tools(bound), index=ToolIndex(stored.definitions))

    def after(self, decision: Addition | Merger, version: int) -> Snapshot:
        """The snapshot once a decision is carried out, without reading the store again."""
        changed = decision.upserts
        tools = [self._rebound(definition, decision) for definition in changed]
        return Snapshot(
            library=self.library.with_tools(tools).at_version(version),
            index=self.index.with_definitions(changed) if changed else self.index,
        )

    def _rebound(self, definition: ToolDefinition, decision: Addition | Merger) -> Tool:
        if isinstance(decision, Addition) and definition is decision.tool.definition:
            return decision.tool
        return self.library[definition.name].with_definition(definition)


def _with_code(stored: ToolDefinition, tool: Tool) -> Tool:
    if tool.definition.signature.parameters != stored.signature.parameters:
        raise UsageError(
            f"the parameters of {tool.name!r} in code differ from those in the library; add the "
            "definition in code to the library first (agentkit tools add --on-conflict replace)"
        )
    return tool.with_definition(stored)
