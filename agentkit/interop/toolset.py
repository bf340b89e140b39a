"""``Toolset``: a library with its policies, for loops that are not ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

from agentkit import library as library_door  # a door: stores load when one is asked for
from agentkit.agent.executor import Execution
from agentkit.agent.selection import SEARCH_TOOL, SelectedTools, Selection, ShownTools, ToolSelector
from agentkit.agent.session import LibraryProvider, RunStart, happened
from agentkit.agent.types import Limits, SelectionPolicy, ToolPolicy
from agentkit.episodes import Episode
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
from agentkit.library.code_binding import CodeBinding
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, Store
from agentkit.messages import Message
from agentkit.models.wire import WireNames
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.decorator import tool as as_tool
from agentkit.tools.tool import Tool
from agentkit.tracing.tracing import Tracing

_LOOK_BACK = 200
"""Among how many waiting episodes one is looked for that a run without a session goes on from."""


class Toolset:
    """The tools of a library, with our retrieval, execution and records, for a loop of others.

    It holds no state of a run and may serve many at once. Each run is pinned to one snapshot and
    ends as an ``Episode`` in the store, which evolution reads like those of our own agent.

    Args:
        source: A library, or a store or its URL, whose newest library is used and in which
            episodes are kept. With a ``Replica`` each run begins on the newest one; otherwise
            ``refresh`` takes it up.
        tools: Tools or functions, bound to the library's definitions of the same name, and
            registered in a store that does not know them (``agentkit.library.code_binding``).
        pin: A version of the store's library that every run uses; None for the newest.
        frozen: Refuse to start where the code and the store's library differ.
        store: Where episodes are kept, when ``source`` is a library.
        retriever: Chooses the tools to offer. ``auto`` offers a library of up to 32 tools whole
            and ranks a larger one; None always offers all.
        selection: Whether a model that is offered a part can ask for more.
        limits: Bounds on the calls of a run. Steps, tokens and cost are for the loop to bound.
        policy: How tools are called. Without its ``approve`` the framework's own way to ask a
            person is used; where it has none, calls that need one are refused with the reason.
        tracing: Is told of retrieval, calls and checks, see ``agentkit.tracing``; its spans lie
            below that of the framework, if that is active. None for nobody.
        name: Recorded as the label ``toolset`` of each episode; empty for no label.

    Example:
        >>> import asyncio
        >>> from agentkit import Library, tool
        >>> from agentkit.messages import AssistantMessage, ToolCall
        >>> @tool
        ... def double(x: int) -> int:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> async def main():
        ...     run = await Toolset(Library([double])).start("Twice 4?")
        ...     call = ToolCall(call_id="1", name="double", arguments={"x": "4"})
        ...     run.answered(AssistantMessage(tool_calls=(call,)))
        ...     result = await run.call(call)
        ...     run.answered(AssistantMessage(text=f"It is {result.text}."))
        ...     return await run.finish()
        >>> asyncio.run(main()).output
        'It is 8.'
    """

    def __init__(
        self,
        source: Library | Store | str = Library(),  # noqa: B008 - immutable
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        store: Store | str | None = None,
        pin: int | None = None,
        frozen: bool = False,
        retriever: Retriever | Literal["auto"] | None = "auto",
        selection: SelectionPolicy = SelectionPolicy(),  # noqa: B008 - immutable
        limits: Limits = Limits(),  # noqa: B008 - immutable
        policy: ToolPolicy = ToolPolicy(),  # noqa: B008 - immutable
        tracing: Tracing | None = None,
        name: str = "",
    ) -> None:
        library = source if isinstance(source, Library) else None
        kept_in = store if isinstance(source, Library) else source
        self.store = library_door.open_store(kept_in) if isinstance(kept_in, str) else kept_in
        own = tuple(entry if isinstance(entry, Tool) else as_tool(entry) for entry in tools)
        self._libraries = LibraryProvider(
            store=self.store, library=library, tools=own, pin=pin, frozen=frozen
        )
        self._selector = ToolSelector(retriever, policy=selection, tracing=tracing)
        self._execution = Execution(policy=policy, limits=limits, tracing=tracing)
        self._labels = {"toolset": name} if name else {}
        self._names: WeakKeyDictionary[Library, WireNames] = WeakKeyDictionary()

    @classmethod
    def of(cls, source: Toolset | Library | Store | str) -> Toolset:
        """A toolset as it is, and anything else that one can be made of with the defaults."""
        return source if isinstance(source, Toolset) else cls(source)

    @property
    def library(self) -> Library:
        """The snapshot that new runs are pinned to."""
        return self._libraries.current

    @property
    def binding(self) -> CodeBinding:
        """What binding the code of ``tools`` to the library came to, with notes for people."""
        return self._libraries.binding

    @property
    def names(self) -> WireNames:
        """The names of its tools as providers accept them."""
        return self._wire_names(self.library)

    @property
    def approves(self) -> bool:
        """Whether the toolset asks a person itself, so that the framework need not."""
        return self._execution.policy.approve is not None

    def refresh(self) -> Library:
        """Take up the newest version from the store, for runs that start from now on."""
        return self._libraries.refresh()

    async def start(
        self,
        request: str,
        *,
        history: Sequence[Message] = (),
        session_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        model: str = "",
        answers: Collection[str] = (),
    ) -> ToolsetRun:
        """Begin a run: pin the library, and choose the tools for the request.

        Args:
            request: What the user says.
            history: The conversation before it; tools that were called in it stay offered.
            session_id: The conversation, which keeps its library version and the tools that it was
                offered, as far as its episodes are in the store.
            metadata: Labels to keep with the episode.
            model: The model's name, for the record.
            answers: Ids of the waiting calls that this run answers. Where no session tells which
                run it goes on from, it is the newest of the store that waits for all of them.

        Raises:
            Exception: What the retriever raised. The run is over then, and its episode is kept.
        """
        start = RunStart(
            request=request,
            library=self._libraries.for_run(),
            history=tuple(history),
            shown=ShownTools.in_messages(history),
            session_id=session_id,
            metadata={**self._labels, **(metadata or {})},
        )
        if self.store is not None and (session_id is not None or answers):
            start = await asyncio.to_thread(self._continued, start, frozenset(answers))
        try:
            selection = await self._selector.select(
                start.request, start.library, history=start.history, shown=start.shown
            )
        except BaseException as error:  # a retriever's; the run has begun, and is kept as one
            nothing = Selection(tools=SelectedTools(library=start.library))
            run = self._run(start, nothing, model)
            await run.finish(stop_reason=stop_reason(error), error=error)
            raise
        return self._run(start, selection, model)

    def _run(self, start: RunStart, selection: Selection, model: str) -> ToolsetRun:
        return ToolsetRun(
            start=start,
            selection=selection,
            executor=self._execution.executor(
                start.library, selection.tools, said=start.history, emit=start.emit
            ),
            store=self.store,
            names=self._wire_names(start.library),
            model=model,
        )

    def _continued(self, start: RunStart, answers: frozenset[str]) -> RunStart:
        assert self.store is not None
        if start.session_id is None:
            episodes = _waiting_for(answers, self.store)
        else:
            matching = EpisodeFilter(session_id=start.session_id, oldest_first=True)
            episodes = happened(self.store.select(matching))
        if not episodes:
            return start
        last = episodes[-1]
        goes_on = not start.request and last.stop_reason == "deferred"
        return replace(
            start,
            library=self._libraries.at(episodes[0].library_version),
            shown=ShownTools.in_episodes(episodes),
            resumes=last.episode_id if goes_on else None,
        )

    def _wire_names(self, library: Library) -> WireNames:
        names = self._names.get(library)
        if names is None:
            names = self._names[library] = WireNames((*library.tools, SEARCH_TOOL))
        return names


def _waiting_for(answers: frozenset[str], store: Store) -> list[Episode]:
    """The newest episode whose waiting calls have all of these ids, if there is one."""
    matching = EpisodeFilter(stop_reason="deferred", limit=_LOOK_BACK)
    for episode in happened(store.select(matching)):
        if answers <= {one.call_id for one in episode.results if one.status == "deferred"}:
            return [episode]
    return []
