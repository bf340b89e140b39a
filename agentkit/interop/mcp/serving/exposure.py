"""Which tools of a snapshot clients get to see, and under which names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from agentkit.interop.mcp.wire import tool_record
from agentkit.library.library import Library
from agentkit.library.linking import broken_links
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenTool:
    """A tool of the library that no client can call.

    Attributes:
        name: What the library calls it.
        reason: Why, in a sentence.
    """

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What clients see of one snapshot.

    Attributes:
        library: The snapshot, linked to its code.
        prefix: What stands before every name; empty for none.
        approval: Who is asked before a tool that needs approval runs: ``client`` asks the person
            at a client that can ask, ``host`` asks a function of this process.
    """

    library: Library
    prefix: str = ""
    approval: Literal["client", "host"] = "client"
    _records: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def runnable(self) -> Mapping[str, Tool]:
        """The tools with code, by the names that clients use."""
        return {self.prefix + tool.name: tool for tool in self.library if tool.is_bound}

    @cached_property
    def open(self) -> Mapping[str, Tool]:
        """Those of the runnable tools that nobody is asked about in a client."""
        if self.approval == "host":
            return self.runnable
        return {name: tool for name, tool in self.runnable.items() if not tool.needs_approval}

    @cached_property
    def hidden(self) -> tuple[HiddenTool, ...]:
        """The tools that can not run here, each with the reason."""
        without_code = (tool for tool in self.library if not tool.is_bound)
        return tuple(HiddenTool(name=one.name, reason=self._why(one)) for one in without_code)

    def _why(self, tool: Tool) -> str:
        if tool.definition.is_composite:
            reasons = (problem.message for problem in broken_links(self.library, tool.name))
            return " ".join(reasons) or "it has no code in this process"
        return f"it has no code in this process; name the module that defines {tool.name!r}"

    def visible(self, *, can_ask: bool) -> Mapping[str, Tool]:
        """The tools that are listed to a client.

        Args:
            can_ask: Whether the client can ask its person for approval.
        """
        return self.runnable if can_ask else self.open

    def searchable(self, *, can_ask: bool) -> Library:
        """The library without what the client can not call."""
        seen = {tool.name for tool in self.visible(can_ask=can_ask).values()}
        return self.library.without(tool.name for tool in self.library if tool.name not in seen)

    def record(self, name: str) -> dict[str, Any]:
        """A visible tool as an entry of ``tools/list``; worked out once a snapshot."""
        known = self._records.get(name)
        if known is None:
            known = self._records[name] = tool_record(self.runnable[name].definition, name=name)
        return known
