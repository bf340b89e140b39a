"""Choosing what a run offers: what its conversation has had so far, then what the request needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from agentkit.agent.events import Emit, ToolsRetrieved
from agentkit.agent.offer import Offer
from agentkit.agent.search import SEARCH_TOOL, ToolSearch, search_tool
from agentkit.episodes import Episode, RetrievalTrace, Turn
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, Message, Usage
from agentkit.retrieval.retriever import Retrieval, Retriever


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What the model of a conversation has been shown of the library.

    Attributes:
        offered: Names of the tools in full, in order.
        found: Names of the tools that a retriever gave for it, in full or as cards.
        first: What was found for the first request; None before it, or when it is not known.
    """

    offered: tuple[str, ...] = ()
    found: frozenset[str] = frozenset()
    first: RetrievalTrace | None = None

    @classmethod
    def in_episodes(cls, episodes: Iterable[Episode]) -> Shown:
        """What the episodes of a conversation, oldest first, say that was shown."""
        offered: dict[str, None] = {}
        found: set[str] = set()
        first: RetrievalTrace | None = None
        for turn in (turn for episode in episodes for turn in episode.turns):
            first = first or turn.retrieval
            traces = (*((turn.retrieval,) if turn.retrieval else ()), *turn.searches)
            found.update(name for trace in traces for name in trace.shortlist)
            offered |= dict.fromkeys(name for trace in traces for name in trace.offered)
            offered |= dict.fromkeys(_called(turn))
        return cls(offered=tuple(offered), found=frozenset(found), first=first)

    @classmethod
    def in_messages(cls, messages: Iterable[Message]) -> Shown:
        """What messages alone tell: the tools that were called, in order of first use."""
        said = (m for m in messages if isinstance(m, AssistantMessage))
        return cls(offered=tuple(dict.fromkeys(c.name for m in said for c in m.tool_calls)))


def _called(turn: Turn) -> Iterator[str]:
    """Names of the tools that a turn called and was allowed to."""
    failures = {result.call_id: result.failure for result in turn.results}
    for call in turn.message.tool_calls:
        failure = failures.get(call.call_id)
        if failure is None or failure.kind != "unknown_tool":
            yield call.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Offering:
    """What a run offers, and how that came about.

    Attributes:
        offer: The tools.
        trace: How they were found; None when nothing was searched.
        search: The model's own searches; None when it can not search.
        usage: What finding them spent on models.
    """

    offer: Offer
    trace: RetrievalTrace | None = None
    search: ToolSearch | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferPolicy:
    """How a retriever's findings are offered.

    Attributes:
        search_tool: Whether the model can search for more.
        cards: Whether ``search_tools`` lists the tools that matched the first request.
    """

    search_tool: bool = True
    cards: bool = True

    async def offering(
        self,
        query: str | None,
        library: Library,
        shown: Shown,
        retriever: Retriever,
        emit: Emit,
        *,
        defers: bool = False,
    ) -> Offering:
        """Retrieve for a request, and add what is found to what was shown before.

        Args:
            query: What to search for; None when a run is resumed with what it had.
            library: The pinned snapshot.
            shown: What the conversation has been shown.
            retriever: Searches.
            emit: Receives events.
            defers: Whether the model's provider searches the rest, instead of ``search_tools``.
        """
        offer = Offer(library=library)
        offer.add(shown.offered)
        found = None if query is None else await retriever.retrieve(query, library)
        offer.add(one.name for one in found.offered) if found else ()
        if defers and self.search_tool:
            offer.defer_rest()
        begun = len(offer.names if shown.first is None else shown.first.offered)
        is_searchable = self.search_tool and begun < len(library) and SEARCH_TOOL not in library
        is_searchable = is_searchable and not offer.deferred
        search = ToolSearch(retriever=retriever, offer=offer, emit=emit) if is_searchable else None
        cards = self._cards(offer, shown.first, found) if is_searchable else ()
        if search is not None:
            offer.own = search_tool(search, cards)
            offer.show((*cards, *shown.found))
        if found is None:
            return Offering(offer=offer, search=search)
        trace = replace(found.trace(), offered=offer.names, cards=cards)
        emit(ToolsRetrieved(trace=trace))
        return Offering(offer=offer, trace=trace, search=search, usage=found.usage)

    def _cards(
        self, offer: Offer, first: RetrievalTrace | None, found: Retrieval | None
    ) -> tuple[str, ...]:
        """The cards that the conversation began with, or those of its first request."""
        if first is not None:
            return first.cards
        if found is None or not self.cards:
            return ()
        names = (hit.definition.name for hit in found.hits)
        return tuple(name for name in names if name not in offer)
