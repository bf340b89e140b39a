"""Which tools a run offers: what its conversation has had so far, then what the request needs.

The selection only ever grows, at its end, so that prompt caches hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from agentkit import (
    retrieval,  # doors: ranking loads when an agent is made
    tracing as spans,
)
from agentkit.agent.types import NO_SPAN, Emit, SelectionPolicy, ToolsRetrieved, ignore
from agentkit.episodes import Episode, RetrievalTrace, Turn
from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from agentkit.models.base import RUN_TOOL, SEARCH_TOOL
from agentkit.retrieval.retriever import Retrieval, Retriever, StepRetriever
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.tracing.tracing import Tracing


@dataclass(kw_only=True)
class SelectedTools:
    """The tools offered in one run, in the order in which the model reads them.

    A prompt begins with the tools, so whatever a provider has cached of a conversation is lost at
    the first difference among them. Hence nothing is ever taken out or moved.

    Attributes:
        library: The pinned snapshot that tools are taken from.
        own: Tools of the runtime, offered before all others, and in the place of any of their name.
        for_programs: Where the library's tools are offered to programs, which a tool of the runtime
            runs, and not by themselves: how a model is shown one.
    """

    library: Library
    own: tuple[Tool, ...] = ()
    for_programs: Callable[[ToolDefinition], str] | None = None
    _tools: dict[str, Tool] = field(init=False, default_factory=dict)
    _shown: set[str] = field(init=False, default_factory=set)
    _definitions: tuple[ToolDefinition, ...] | None = field(init=False, default=None)

    @classmethod
    def whole(cls, library: Library) -> SelectedTools:
        """Every tool of a library."""
        tools = cls(library=library)
        tools._tools = dict(library.tools)
        tools._definitions = library.definitions
        return tools

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model reads; the same object until something is added."""
        if self._definitions is None:
            every = self.own
            if self.for_programs is None:
                taken = {one.name for one in self.own}
                every = (*every, *(one for one in self._tools.values() if one.name not in taken))
            self._definitions = tuple(tool.definition for tool in every)
        return self._definitions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the library's tools that are offered, in order."""
        return tuple(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        """The offered tool of that name; None for one that is not offered."""
        own = next((one for one in self.own if one.name == name), None)
        return own or self._tools.get(name)

    def is_own(self, tool: Tool) -> bool:
        """Whether it is a tool of the runtime, which changes nothing by itself."""
        return any(one is tool for one in self.own)

    def at_hand(self) -> dict[str, Tool]:
        """The library's tools that may be called: those offered, and those with a card."""
        shown = {name: tool for name in self._shown if (tool := self.library.tools.get(name))}
        return {name: one for name, one in {**shown, **self._tools}.items() if name != RUN_TOOL}

    def add_own(self, tools: Iterable[Tool]) -> None:
        """Offer tools of the runtime, before all others."""
        new = tuple(tools)
        if new:
            self.own = (*self.own, *new)
            self._definitions = None

    def take(self, name: str) -> Tool | None:
        """The tool of that name if the model may call it; offered from now on if it was not.

        One of which the model has seen the card may be called at once: its arguments are checked
        as always. A tool that no retriever gave is refused, whether or not the library has it.
        """
        if name in self._shown:
            self.add((name,))
        return self.get(name)

    def show(self, names: Iterable[str]) -> None:
        """Remember of which tools the model is shown a card."""
        self._shown.update(names)

    def add(self, names: Iterable[str]) -> None:
        """Offer more tools of the library; names that it lacks are ignored."""
        for name in names:
            tool = self.library.tools.get(name)
            if tool is not None and name not in self._tools and not _is_foreign_search(tool):
                self._tools[name] = tool
                self._definitions = None


OFFER_ALL_UP_TO = 32
"""With ``retriever="auto"``, libraries of at most this many tools are offered whole."""

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
_RESULTS = 16
"""Results of a run, the newest, that a search looks into for what a tool could take."""

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


def _is_foreign_search(tool: Tool) -> bool:
    """Whether a tool has the name of the search, and is no code of one's own."""
    definition = tool.definition
    is_elsewhere = definition.is_composite or definition.origin.kind in {"mcp", "openapi"}
    return tool.name == SEARCH_TOOL and (is_elsewhere or not tool.is_bound)


@dataclass(kw_only=True)
class ToolSearch:
    """What the model's searches of one run found.

    Attributes:
        retriever: Searches the library.
        tools: Takes up what is found.
        emit: Receives events.
        begun: The tools with which the runs of the conversation began; no search added them.
        tracing: Is told of each search; None for nobody.
        results: What the calls of the run gave so far; grows. The search prefers tools that can
            take some of it.
        traces: Searches since ``taken``, in order; grows.
        usage: What they spent on models since ``taken``.
    """

    retriever: Retriever
    tools: SelectedTools
    emit: Emit
    begun: frozenset[str] = frozenset()
    tracing: Tracing | None = None
    results: list[object] = field(init=False, default_factory=list)
    traces: list[RetrievalTrace] = field(init=False, default_factory=list)
    usage: Usage = field(init=False, default_factory=Usage)

    async def search(self, query: str, limit: int = _USUAL) -> str:
        """Find tools, offer the best of them, and list what was found.

        Args:
            query: What a tool is needed for, or a tool's name.
            limit: Most tools to list; no other is offered.
        """
        found = await _retrieved(
            self.retriever, query, self.tools.library, self.tracing, self.results
        )
        hits = found.hits[: int(limit)]  # JSON's integers include 5.0
        shown = [hit.definition for hit in hits if hit.definition.name != SEARCH_TOOL]
        names = {definition.name for definition in shown}
        self.tools.show(names)
        self.tools.add(one.name for one in found.offered if one.name in names)
        trace = replace(found.trace(), offered=self.tools.names)
        self.traces.append(trace)
        self.usage += found.usage
        self.emit(ToolsRetrieved(trace=trace))
        return self._listed(shown) if shown else _nothing(found)

    def found_in(self, messages: Iterable[Message]) -> dict[str, tuple[str, ...]]:
        """By the call of each search that messages tell of, the tools that it added."""
        seen = set(self.begun)
        found: dict[str, tuple[str, ...]] = {}
        for one in messages:
            if not (isinstance(one, ToolMessage) and one.name == SEARCH_TOOL):
                continue
            listed, _, _ = one.text.partition(f"\n{_FURTHER}")
            names = (line.partition("(")[0] for line in listed.splitlines()[1:])
            added = tuple(n for n in names if n in self.tools and n not in seen)
            if added and listed.startswith(_CALLABLE):
                found[one.call_id] = added
                seen.update(added)
        return found

    def taken(self) -> tuple[tuple[RetrievalTrace, ...], Usage]:
        """The searches since the last time, with what they cost."""
        taken = tuple(self.traces), self.usage
        self.traces.clear()
        self.usage = Usage()
        return taken

    def _listed(self, shown: Sequence[ToolDefinition]) -> str:
        in_full = self.tools.for_programs or retrieval.card
        here = [in_full(one) for one in shown if one.name in self.tools]
        further = [retrieval.card(one) for one in shown if one.name not in self.tools]
        parts = [(_CALLABLE, here), (_FURTHER, further)]
        return "\n".join(line for title, cards in parts if cards for line in (title, *cards))


async def _retrieved(
    retriever: Retriever,
    query: str,
    library: Library,
    tracing: Tracing | None,
    results: Sequence[object] = (),
) -> Retrieval:
    with NO_SPAN if tracing is None else spans.retrieval_span(tracing, query, library) as span:
        if results and isinstance(retriever, StepRetriever):
            in_hand = retrieval.values_in_hand(results[-_RESULTS:])
            span.value = found = await retriever.retrieve_next(query, library, in_hand)
        else:
            span.value = found = await retriever.retrieve(query, library)
    return found


def search_tool(search: ToolSearch, cards: Iterable[str]) -> Tool:
    """The tool that a model calls to search.

    What it says about itself depends on the library and on ``cards`` alone, so it stays the same
    for a whole conversation.

    Args:
        search: Does the work.
        cards: Names of tools that it lists as one-line cards; unknown ones are left out.
    """
    library = search.tools.library
    text = _PURPOSE.format(count=len(library))
    listed = [retrieval.card(library[name].definition) for name in cards if name in library]
    if listed:
        text = "\n".join((text, _CARDS, *listed))
    ordered = Effects(writes=True)  # what it changes is the offer, in the order of the calls
    definition = ToolDefinition.from_schema(SEARCH_TOOL, text, _PARAMETERS, effects=ordered)
    return Tool(definition=definition, function=search.search, is_async=True)


def _nothing(found: Retrieval) -> str:
    """What a search without a result says; however much was asked, it stays short."""
    words = ", ".join(found.unmatched[:_MOST_WORDS])
    known = f" No tool has the words {words}." if words else ""
    query = " ".join(found.query.split())[:_LONGEST_QUERY]
    return f"No tool matches {query!r}.{known} Try other words, or go on without."


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTools:
    """What the model of a conversation has been shown of the library.

    Attributes:
        offered: Names of the tools in full, in order.
        found: Names of the tools that a retriever gave for it, in full or as cards.
        first: What was found for the first request; None before it, or when it is not known.
        begun: Names of the tools with which a run began, and not those that its model searched for.
    """

    offered: tuple[str, ...] = ()
    found: frozenset[str] = frozenset()
    first: RetrievalTrace | None = None
    begun: frozenset[str] = frozenset()

    @classmethod
    def in_episodes(cls, episodes: Iterable[Episode]) -> ShownTools:
        """What the episodes of a conversation, oldest first, say that was shown."""
        offered: dict[str, None] = {}
        found: set[str] = set()
        begun: set[str] = set()
        first: RetrievalTrace | None = None
        for turn in (turn for episode in episodes for turn in episode.turns):
            first = first or turn.retrieval
            begun.update(set(turn.retrieval.offered) - offered.keys() if turn.retrieval else ())
            traces = (*((turn.retrieval,) if turn.retrieval else ()), *turn.searches)
            found.update(name for trace in traces for name in trace.shortlist)
            offered |= dict.fromkeys(name for trace in traces for name in trace.offered)
            offered |= dict.fromkeys(_called(turn))
        return cls(
            offered=tuple(offered), found=frozenset(found), first=first, begun=frozenset(begun)
        )

    @classmethod
    def in_messages(cls, messages: Iterable[Message]) -> ShownTools:
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
class Selection:
    """What a run offers, and how that came about.

    Attributes:
        tools: The tools.
        trace: How they were found; None when nothing was searched.
        search: The model's own searches; None when it can not search.
        usage: What finding them spent on models.
    """

    tools: SelectedTools
    trace: RetrievalTrace | None = None
    search: ToolSearch | None = None
    usage: Usage = field(default_factory=Usage)


class ToolSelector:
    """How the tools of a run are selected.

    Args:
        retriever: Ranks the library. ``auto`` offers a library of up to ``OFFER_ALL_UP_TO`` tools
            whole and ranks a larger one; None always offers all of it.
        policy: Whether the model can search for more.
        tracing: Is told of each search; None for nobody.

    Raises:
        UsageError: ``retriever`` is a word that means nothing.
    """

    def __init__(
        self,
        retriever: Retriever | Literal["auto"] | None,
        *,
        policy: SelectionPolicy = SelectionPolicy(),  # noqa: B008 - immutable
        tracing: Tracing | None = None,
    ) -> None:
        self._all_up_to = -1  # a library of no tool is ranked by a retriever of the caller's, too
        if isinstance(retriever, str):
            if retriever != "auto":
                raise UsageError(
                    f"retriever is {retriever!r}; use 'auto', an object with a method retrieve, or "
                    "None to offer every tool"
                )
            retriever = retrieval.default_retriever(examples=policy.examples)
            self._all_up_to = OFFER_ALL_UP_TO
        self._retriever: Retriever | None = retriever
        self.examples = policy.examples
        self._policy = policy
        self._tracing = tracing

    async def select(
        self,
        request: str,
        library: Library,
        *,
        history: Sequence[Message] = (),
        shown: ShownTools | None = None,
        emit: Emit = ignore,
    ) -> Selection:
        """The tools for a run: what its conversation has had so far, then what the request needs.

        A run without a request goes on with the tools that its conversation had. Where only
        messages tell of that, what was not called is unknown, and is searched for once more.

        Args:
            request: What the user says; empty when a run is resumed.
            library: The pinned snapshot.
            history: What was said before.
            shown: What the conversation has been shown.
            emit: Receives events.
        """
        retriever = self._retriever
        if retriever is None or len(library) <= self._all_up_to:
            return Selection(tools=SelectedTools.whole(library))
        shown = shown or ShownTools()
        said = [m.text for m in history if isinstance(m, UserMessage)][-1:]
        goes_on = not request and shown.first is not None
        query = "\n".join((*said, request)).strip()
        found = None if goes_on else await _retrieved(retriever, query, library, self._tracing)
        tools = SelectedTools(library=library)
        tools.add(shown.offered)
        if found is not None:
            tools.add(one.name for one in found.offered)
        return self._searchable(tools, found, shown, retriever, emit)

    def _searchable(
        self,
        tools: SelectedTools,
        found: Retrieval | None,
        shown: ShownTools,
        retriever: Retriever,
        emit: Emit,
    ) -> Selection:
        """The selection, with ``search_tools`` and its cards where the model may want more."""
        library = tools.library
        begun = len(tools.names if shown.first is None else shown.first.offered)
        wants_more = begun < len(library)
        named_so = library.get(SEARCH_TOOL)
        has_own = named_so is not None and not _is_foreign_search(named_so)
        is_searchable = self._policy.search_tool and wants_more and not has_own
        search: ToolSearch | None = None
        cards = self._cards(tools, shown.first, found) if is_searchable else ()
        if is_searchable:
            search = ToolSearch(
                retriever=retriever,
                tools=tools,
                emit=emit,
                begun=shown.begun | (set(tools.names) - set(shown.offered)),
                tracing=self._tracing,
            )
            tools.add_own((search_tool(search, cards),))
            tools.show((*cards, *shown.found))
        if found is None:
            return Selection(tools=tools, search=search)
        trace = replace(found.trace(), offered=tools.names, cards=cards)
        emit(ToolsRetrieved(trace=trace))
        return Selection(tools=tools, trace=trace, search=search, usage=found.usage)

    def _cards(
        self, tools: SelectedTools, first: RetrievalTrace | None, found: Retrieval | None
    ) -> tuple[str, ...]:
        """The cards that the conversation began with, or those of its first request."""
        if first is not None:
            return first.cards
        if found is None:
            return ()
        names = (hit.definition.name for hit in found.hits)
        return tuple(name for name in names if name not in tools)
