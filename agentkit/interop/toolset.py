"""``Toolset``: a library with its policies for loops that are not ours; ``ToolsetRun``: one run."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

from agentkit import library as library_door  # a door: stores load when one is asked for
from agentkit.agent.checks import bounded, normalize_response
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools, Selection, ShownTools, ToolSelector
from agentkit.agent.session import LibraryProvider, RunStart, happened
from agentkit.agent.types import (
    WAITS_FOR_PERSON,
    Approval,
    AskedLater,
    Decision,
    Limits,
    SelectionPolicy,
    ToolPolicy,
    as_approval,
)
from agentkit.episodes import Episode, RetrievalTrace, StopReason, Turn
from agentkit.errors import MissingExtraError
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, EpisodeStore, Store
from agentkit.messages import (
    AssistantMessage,
    FailureKind,
    Message,
    ResultStatus,
    ToolCall,
    ToolFailure,
    ToolResult,
    Usage,
)
from agentkit.models.base import SEARCH_TOOL
from agentkit.models.wire import WireNames, decode_call
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.decorator import tool as as_tool
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invocation import UnserialisableError, encode_result, run_in_daemon_thread
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
        tracing: Records retrieval, calls and checks, see ``agentkit.tracing``; its spans lie
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
            executor=Executor(
                shared=self._execution, tools=selection.tools, said=start.history, emit=start.emit
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


def framework_module(name: str, *others: str, feature: str, install: str) -> Any:
    """A framework's package, with modules of it.

    Raises:
        MissingExtraError: It is not installed; the message says what to install.
    """
    try:
        module, *_ = [importlib.import_module(one) for one in (name, *others)]
    except ImportError as error:
        raise MissingExtraError(feature, package=name, install=install) from error
    return module


# --- one run of a framework's loop ----------------------------------------------------------------

_NO_USAGE = Usage()

_DECISION: ContextVar[tuple[str, Approval | None]] = ContextVar("_DECISION", default=("", None))
"""What a person said of the call that runs. Models use an id twice, so that no run remembers it."""

_GRACE_SECONDS = 0.2
"""How long a call waits for one before it to be handed on, which a framework may never do."""


class ToolsetRun:
    """Chooses, executes and records for one run that another framework drives.

    The framework's adapter tells it what the model answered (``answered``), hands on the calls
    (``call``) and ends it (``finish``), which makes the episode and keeps it. Made by
    ``Toolset.start``. Calls may come side by side, from threads with event loops of their own.

    Args:
        start: The state in which the run begins.
        selection: The tools that were chosen.
        executor: Runs the calls; made for this run alone.
        store: Where the episode is kept; None for nowhere.
        names: The names of the library's tools as providers accept them.
        model: The model's name, for the record.

    Attributes:
        episode: The record, once the run is finished.
    """

    def __init__(
        self,
        *,
        start: RunStart,
        selection: Selection,
        executor: Executor,
        store: EpisodeStore | None,
        names: WireNames,
        model: str = "",
    ) -> None:
        self.model = model
        self.names = names
        self.episode: Episode | None = None
        self._start = start
        self._selection = selection
        self._executor = executor
        self._asks = executor.approve
        executor.approve = self._decide
        self._store = store
        self._turns: list[OpenTurn] = []
        self._running: list[tuple[ToolCall, Future[None]]] = []
        self._began = self._asked = time.perf_counter()
        self._at = datetime.now(UTC)

    @property
    def library(self) -> Library:
        """The pinned snapshot."""
        return self._start.library

    @property
    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools for the model's next step; grows when the model searches for more."""
        return self._selection.tools.definitions

    def offer(self, names: Iterable[str]) -> None:
        """Let the model call tools that the framework has shown it, whatever retrieval chose."""
        self._selection.tools.add(names)

    def tool(self, name: str) -> Tool | None:
        """The tool of that name that the model may call; None for one that is not ours."""
        offer = self._selection.tools
        return offer.get(name) or self.library.tools.get(name)

    def as_call(self, call_id: str, wire_name: str, arguments: str | Mapping[str, Any]) -> ToolCall:
        """A call as frameworks hand it on, under the name that the library knows.

        Arguments that are no JSON object make a malformed call, which ``call`` answers in words.
        """
        given = arguments if isinstance(arguments, str) else dict(arguments)
        return replace(decode_call(call_id, wire_name, given, self.names), call_id=call_id)

    def asks(self) -> None:
        """The model is asked now; the time of the next answer counts from here."""
        self._asked = time.perf_counter()

    def answered(
        self, message: AssistantMessage, *, usage: Usage = _NO_USAGE, seconds: float | None = None
    ) -> None:
        """Report the model's answer; call this before the calls of the answer are run.

        Args:
            message: What it said, its calls made by ``as_call``.
            usage: What that cost.
            seconds: How long it took; None for the time since ``asks``.
        """
        taken = time.perf_counter() - self._asked if seconds is None else seconds
        self._turns.append(OpenTurn(message=message, usage=usage, seconds=taken))

    async def call(self, call: ToolCall, *, approval: Decision | None = None) -> ToolResult:
        """Validate, run and record a call.

        Calls that declare ``writes``, and those that a learned rule wants in order, wait for those
        that were started before them; others run side by side.

        Args:
            call: The call.
            approval: The decision of a person whom the framework has asked.

        Returns:
            What came of it, in words that the model reads (``text``). ``deferred`` when a person
            has to be asked, or somebody outside this process has to answer; such a call may be made
            again with an approval, or its value reported with ``observed``.
        """
        written = self.asked(call.call_id)
        if written is not None and written.malformed is not None:
            call = written  # frameworks hand it on as a call without arguments, or with some
        call = bounded(call)
        done: Future[None] = Future()
        await self._order_kept(call)
        first = [future for other, future in self._running if self._goes_before(other, call)]
        self._running.append((call, done))
        try:
            if first:  # `wait` leaves what it waits for alone when it is cancelled itself
                await asyncio.wait([asyncio.wrap_future(future) for future in first])
            decided = _DECISION.set(
                (call.call_id, None if approval is None else as_approval(approval))
            )
            try:
                (result,) = await self._executor.execute((call,))
            finally:
                _DECISION.reset(decided)
        finally:
            self._running.remove((call, done))
            done.set_result(None)
        self._add(call, result)
        return result

    def observed(self, call_id: str, value: object, *, status: ResultStatus = "ok") -> None:
        """Record what came of a call that the framework ran, or refused, itself.

        A call that no answer holds, or that has its result, is left as it is: frameworks report
        our results as well.

        Args:
            call_id: The call.
            value: What it gave, as data or as the model reads it.
            status: Whether that is a result, or the words of a failure or a refusal.
        """
        call = self._waiting(call_id)
        if call is None:
            return
        data, text = _recordable(value)
        result = ToolResult(call_id=call_id, name=call.name, status=status, text=text)
        if status == "ok":
            self._add(call, replace(result, value=data))
            return
        kind: FailureKind = "denied" if status == "denied" else "tool_failed"
        self._add(call, replace(result, failure=ToolFailure(kind=kind, rule=text)))

    def deferred(self, call_id: str) -> None:
        """Record that a call waits for a person, where the framework asks before it hands it on."""
        call = self._waiting(call_id)
        if call is not None:
            text = WAITS_FOR_PERSON.format(name=call.name)
            waits = ToolResult(
                call_id=call_id, name=call.name, status="deferred", text=text, attempts=0
            )
            self._add(call, waits)

    def asked(self, call_id: str) -> ToolCall | None:
        """The newest call of that id among the model's answers, as it was recorded."""
        calls = (call for turn in reversed(self._turns) for call in turn.message.tool_calls)
        return next((call for call in calls if call.call_id == call_id), None)

    @property
    def open_calls(self) -> bool:
        """Whether a call of the newest answer, of one of our tools, has no result at all yet."""
        if not self._turns:
            return False
        turn = self._turns[-1]
        calls = turn.message.tool_calls
        return any(self.tool(one.name) and not turn.results.get(one.call_id) for one in calls)

    def _waiting(self, call_id: str) -> ToolCall | None:
        """The call of that id that has no result yet."""
        waits = any(turn.wants(call_id) for turn in self._turns)
        return self.asked(call_id) if waits else None

    async def finish(
        self,
        output: Any = None,
        *,
        stop_reason: StopReason = "finished",
        error: BaseException | None = None,
    ) -> Episode:
        """End the run: make its episode and keep it. A second call changes nothing.

        Cancelled while it is being kept, this returns when it is kept.

        Args:
            output: The final answer; None takes the text of the last one.
            stop_reason: Why the run ended.
            error: What it ended by.
        """
        episode = self._ended(output, stop_reason, error)
        if self._store is not None:
            append = partial(self._store.append, episode)
            writing = asyncio.ensure_future(run_in_daemon_thread(append))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await asyncio.wait({writing})
                raise
        return episode

    def finish_now(
        self,
        output: Any = None,
        *,
        stop_reason: StopReason = "finished",
        error: BaseException | None = None,
    ) -> Episode:
        """``finish`` for code without an event loop, or one whose task is being cancelled."""
        episode = self._ended(output, stop_reason, error)
        if self._store is not None:
            self._store.append(episode)
        return episode

    def _ended(self, output: Any, stop_reason: StopReason, error: BaseException | None) -> Episode:
        if self.episode is not None:
            return self.episode
        start, turns = self._start, self._closed()
        if output is None and stop_reason == "finished" and turns:
            output = turns[-1].message.text
        self.episode = Episode(
            episode_id=start.episode_id,
            request=start.request,
            turns=turns,
            stop_reason=stop_reason,
            output=None if output is None else _recordable(output)[0],
            model=self.model,
            library_version=start.library.version,
            session_id=start.session_id,
            history_length=len(start.history),
            resumes=start.resumes,
            usage=sum((turn.usage for turn in turns), self._selection.usage),
            started_at=self._at.isoformat(timespec="milliseconds"),
            seconds=time.perf_counter() - self._began,
            error=None if error is None else f"{type(error).__name__}: {error}".rstrip(": "),
            metadata=dict(start.metadata),
        )
        return self.episode

    def _decide(self, call: ToolCall, tool: Tool) -> Any:
        """The ``Approver`` of the executor: the framework's decision, then the application's."""
        call_id, decision = _DECISION.get()
        if decision is not None and call_id == call.call_id:  # and not one of its program
            return decision
        if self._asks is None:
            raise AskedLater
        return self._asks(call, tool)

    async def _order_kept(self, call: ToolCall) -> None:
        """Let calls begin before this one that have to end before it, when threads race for it."""
        turn = self._turn_of(call)
        deadline = time.perf_counter() + _GRACE_SECONDS
        while any(self._goes_before(other, call) for other in turn.to_come(call)):
            if time.perf_counter() > deadline:
                break
            await asyncio.sleep(0.001)
        turn.begun.add(call.call_id)

    def _goes_before(self, other: ToolCall, call: ToolCall) -> bool:
        """Whether a call that runs has to end before ``call`` begins."""
        one, two = self.tool(other.name), self.tool(call.name)
        if one is None or two is None:
            return False
        if one.definition.signature.effects.writes and two.definition.signature.effects.writes:
            return True
        return other.name in self._executor.shared.contracts.wanted_before(two.definition)

    def _turn_of(self, call: ToolCall) -> OpenTurn:
        """The newest turn that waits for the call; one is made for a call that no answer holds."""
        for turn in reversed(self._turns):
            if turn.wants(call.call_id):
                return turn
        self._turns.append(OpenTurn(message=AssistantMessage(tool_calls=(call,))))
        return self._turns[-1]

    def _closed(self) -> tuple[Turn, ...]:
        """The turns as an episode holds them; how tools were found stands in the first one."""
        turns: list[Turn] = []
        for turn in self._turns:
            turns.append(turn.closed(turns))
        if turns and self._selection.trace is not None:
            turns[0] = replace(turns[0], retrieval=self._selection.trace)
        return tuple(turns)

    def _add(self, call: ToolCall, result: ToolResult) -> None:
        turn = self._turn_of(call)
        turn.add(result)
        search = self._selection.search
        if search is not None:
            searches, usage = search.taken()
            turn.searches = (*turn.searches, *searches)
            turn.usage += usage


def stop_reason(error: BaseException, limits: Mapping[str, StopReason] | None = None) -> StopReason:
    """Why a run ended that an exception ended.

    Args:
        error: The exception.
        limits: What the framework raises at its limits, by the name of the class.
    """
    if not isinstance(error, Exception):
        return "cancelled"
    return (limits or {}).get(type(error).__name__, "error")


def _recordable(value: object) -> tuple[Any, str]:
    """JSON data and text of a value that the framework made; its own text where JSON fails."""
    try:
        return encode_result(value)
    except UnserialisableError:
        return str(value), str(value)


@dataclass(kw_only=True)
class OpenTurn:
    """One answer of the model, whose results come in one by one.

    Attributes:
        message: The answer.
        usage: What it cost.
        seconds: Wait for the model.
        results: Results by call id, in the order in which they came; ids may repeat.
        begun: Ids of the calls that the framework has handed on.
        searches: What the model's own searches for tools found.
        began: When the answer was recorded, on the clock of ``time.perf_counter``.
        ended: When the last result came, on the same clock.
    """

    message: AssistantMessage
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    results: defaultdict[str, deque[ToolResult]] = field(default_factory=lambda: defaultdict(deque))
    begun: set[str] = field(default_factory=set)
    searches: tuple[RetrievalTrace, ...] = ()
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0

    def wants(self, call_id: str) -> bool:
        """Whether a call of that id has no result yet, or one that only says that it waits."""
        count = sum(call.call_id == call_id for call in self.message.tool_calls)
        results = self.results.get(call_id, ())
        return sum(result.status != "deferred" for result in results) < count

    def add(self, result: ToolResult) -> None:
        """A call has ended; one that waited before has now the result that counts."""
        results = self.results[result.call_id]
        waiting = next((one for one in results if one.status == "deferred"), None)
        if waiting is None:
            results.append(result)
        else:
            results[results.index(waiting)] = result
        self.ended = time.perf_counter()

    def to_come(self, call: ToolCall) -> list[ToolCall]:
        """The calls that stand before ``call`` in the answer and are not handed on yet."""
        ids = [one.call_id for one in self.message.tool_calls]
        before = self.message.tool_calls[: ids.index(call.call_id)] if call.call_id in ids else ()
        return [one for one in before if one.call_id not in self.begun and self.wants(one.call_id)]

    def closed(self, earlier: list[Turn]) -> Turn:
        """The turn with the results there are, under ids that no call of ``earlier`` has."""
        message = normalize_response(self.message, earlier)
        left = {call_id: deque(results) for call_id, results in self.results.items()}
        results = [
            replace(left[call.call_id].popleft(), call_id=unique.call_id)
            for call, unique in zip(self.message.tool_calls, message.tool_calls, strict=True)
            if left.get(call.call_id)
        ]
        running = max(0.0, self.ended - self.began)
        return Turn(
            message=message,
            results=tuple(results),
            usage=self.usage,
            searches=self.searches,
            seconds=self.seconds + running,
            model_seconds=self.seconds,
        )
