"""``search_tools``: how a model asks for tools that it was not offered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agentkit.agent.events import Emit, ToolsRetrieved
from agentkit.agent.offer import Offer
from agentkit.episodes import RetrievalTrace
from agentkit.messages import Usage
from agentkit.retrieval.asking import shortened
from agentkit.retrieval.cards import card
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool

SEARCH_TOOL = "search_tools"
"""Its name. In a library that has a tool of its own by this name, there is no search."""

_PURPOSE = (
    "Find more tools. Only a few of {count:,} are given to you. When none of them does what a step "
    "needs, say here what the step needs, or name a tool exactly; the tools that are found can be "
    "called from the next step on."
)
_CARDS = "Among them, search for one by its name to read its parameters:"
_CALLABLE = "You can call these now:"
_FURTHER = "These match less; search for one by its name to read its parameters:"
_MOST = 32
_USUAL = 8
_MOST_WORDS = 16
_LONGEST_QUERY = 200

_PARAMETERS = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "What a tool is needed for, in words, or the name of a tool.",
        },
        "limit": {
            "type": "integer",
            "description": "Most tools to list.",
            "minimum": 1,
            "maximum": _MOST,
            "default": _USUAL,
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(kw_only=True)
class ToolSearch:
    """What the model's searches of one run found.

    Attributes:
        retriever: Searches the library.
        offer: Takes up what is found.
        emit: Receives events.
        traces: Searches since ``taken``, in order; grows.
        usage: What they spent on models since ``taken``.
    """

    retriever: Retriever
    offer: Offer
    emit: Emit
    traces: list[RetrievalTrace] = field(init=False, default_factory=list)
    usage: Usage = field(init=False, default_factory=Usage)

    async def search(self, query: str, limit: int = _USUAL) -> str:
        """Find tools, offer the best of them, and list what was found.

        Args:
            query: What a tool is needed for, or a tool's name.
            limit: Most tools to list; no other is offered.
        """
        found = await self.retriever.retrieve(query, self.offer.library)
        shown = [hit.definition for hit in found.hits[: int(limit)]]  # JSON's integers include 5.0
        names = {definition.name for definition in shown}
        self.offer.show(names)
        self.offer.add(one.name for one in found.offered if one.name in names)
        trace = replace(found.trace(), offered=self.offer.names)
        self.traces.append(trace)
        self.usage += found.usage
        self.emit(ToolsRetrieved(trace=trace))
        return self._listed(shown) if shown else _nothing(found)

    def taken(self) -> tuple[tuple[RetrievalTrace, ...], Usage]:
        """The searches since the last time, with what they cost."""
        taken = tuple(self.traces), self.usage
        self.traces.clear()
        self.usage = Usage()
        return taken

    def _listed(self, shown: Sequence[ToolDefinition]) -> str:
        here = [card(one) for one in shown if one.name in self.offer]
        further = [card(one) for one in shown if one.name not in self.offer]
        parts = [(_CALLABLE, here), (_FURTHER, further)]
        return "\n".join(line for title, cards in parts if cards for line in (title, *cards))


def search_tool(search: ToolSearch, cards: Iterable[str]) -> Tool:
    """The tool that a model calls to search.

    What it says about itself depends on the library and on ``cards`` alone, so it stays the same
    for a whole conversation.

    Args:
        search: Does the work.
        cards: Names of tools that it lists as one-line cards; unknown ones are left out.
    """
    library = search.offer.library
    text = _PURPOSE.format(count=len(library))
    listed = [card(library[name].definition) for name in cards if name in library]
    if listed:
        text = "\n".join((text, _CARDS, *listed))
    ordered = Effects(writes=True)  # what it changes is the offer, in the order of the calls
    definition = ToolDefinition.from_schema(SEARCH_TOOL, text, _PARAMETERS, effects=ordered)
    return Tool(definition=definition, function=search.search, is_async=True)


def _nothing(found: Retrieval) -> str:
    """What a search without a result says; however much was asked, it stays short."""
    words = ", ".join(found.unmatched[:_MOST_WORDS])
    known = f" No tool has the words {words}." if words else ""
    query = shortened(found.query, _LONGEST_QUERY)
    return f"No tool matches {query!r}.{known} Try other words, or go on without."
