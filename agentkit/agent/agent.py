"""``Agent``: a model, a library of tools, and the policy of how they are used."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack

from agentkit import (
    agent as agent_door,  # doors: what is asked for loads then
    library as library_door,
    models as models_door,
    tracing as tracing_door,
)
from agentkit._waiting import wait_for
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import Execution
from agentkit.agent.run import AgentRunner, DeferredResults, stream_events
from agentkit.agent.selection import ToolSelector
from agentkit.agent.session import (
    LibraryProvider,
    PendingApprovals,
    Router,
    RunPreparation,
    RunStart,
    continuation_id,
    new_episode_id,
    spent_before,
)
from agentkit.agent.types import (
    Decision,
    Emit,
    Instruction,
    Instructions,
    Limits,
    Observer,
    RefineSettings,
    Request,
    ResumeOptions,
    RunEvent,
    RunOptions,
    RunResult,
    SelectionPolicy,
    StorePolicy,
    ToolPolicy,
    as_approval,
    ignore,
)
from agentkit.episodes import Episode, RefineMode
from agentkit.episodes.labels import WAITING_AGENT
from agentkit.errors import UsageError
from agentkit.library.code_binding import CodeBinding
from agentkit.library.library import Library
from agentkit.library.store import Store
from agentkit.media import Media, placed
from agentkit.messages import JsonObject, Message
from agentkit.models.base import ChatModel, ModelSettings, resolve_model
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.decorator import tool as as_tool
from agentkit.tools.invocation import (
    ANY_DEPS,
    DepsT,
    OutputT,
    RunContext,
    check_deps,
    check_tool_deps,
)
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.agent.guardrails import Guardrail
    from agentkit.agent.history import HistoryProcessor
    from agentkit.tracing.tracing import Tracing

T = TypeVar("T")

_CLOSE_SECONDS = 10.0
"""A little more than what SQLite waits for a lock, twice."""


class Agent(Generic[DepsT, OutputT]):
    """Answers requests with a model and tools.

    An agent holds no state of a run and may serve many runs at once. Each run is pinned to one
    library snapshot and ends as an ``Episode``.

    Args:
        model: A ``ChatModel``, or a name such as ``openai:gpt-4o-mini`` or ``local:smollm2-135m``.
        tools: Tools, or plain functions that become tools.
        library: A snapshot to use instead of the store's newest one; ``tools`` are added to it.
        store: A store or its URL. Its newest library is loaded, ``tools`` are bound to its
            definitions of the same name, and every episode is kept in it. A tool that it does not
            know is registered; where the contract of one changed in code, a new revision is
            written (``agentkit.library.code_binding``). With a ``Replica`` each run begins on the
            newest library; otherwise ``refresh`` picks it up.
        store_policy: Which version of its library runs use, and what to do while it fails.
        instructions: The system message: a text, a function of the ``RunContext`` that gives one,
            sync or async, or several of both. Texts come first, so that prompt caches hold.
            ``Instructions`` with a name are kept in the library, where they can evolve.
        deps_type: The type of what runs are given as ``deps`` and tools find in
            ``RunContext.deps``.
        output_type: A type (or JSON Schema) that the final answer must match; None for text.
        retriever: Chooses the tools to offer. ``auto`` offers a library of up to 32 tools whole
            and ranks a larger one; None always offers all.
        selection: How the model can ask for more of them.
        tool_policy: How tools are called: approval, timeouts, retries, contracts.
        limits: Bounds on one run.
        refine: How proposed calls are refined before they run, see ``agentkit.agent.refine``.
        code_mode: Offer one tool, ``run_program``: the model writes programs over the others, which
            are checked and interpreted, see ``agentkit.agent.code_mode``.
        settings: How to generate.
        router: Decides before each run which library it uses and how its episode is labelled, see
            ``agentkit.agent.session``; None pins each run to the newest version, or to that of
            its conversation.
        guardrails: Look at inputs, tool calls, tool results and outputs, see ``guardrail``.
        history_processors: What of a long conversation the model is sent, in order:
            ``KeepLastTurns``, ``TokenBudget``, ``Summarize``, ``CapToolResults``, or functions of
            the ``RunContext`` and the messages.
        observers: Are told of every run that gave a result, once it is there.
        tracing: Is told what runs do while they do it, see ``agentkit.tracing``; None for nobody.
        name: The agent's name, for records.

    Raises:
        ModelNotFoundError: No model answers to that name.
        UsageError: The arguments contradict each other, or a cost limit is given and nobody knows
            what the model costs.
        CodeDriftError: ``frozen``, and code and library differ.

    Example:
        >>> from agentkit import Agent, tool
        >>> from agentkit.messages import ToolCall
        >>> from agentkit.testing import ScriptedModel
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> call = ToolCall(call_id="1", name="add", arguments={"a": 1, "b": 2})
        >>> agent = Agent(ScriptedModel([[call], "It is 3."]), tools=[add])
        >>> result = agent.run_sync("What is 1 + 2?")
        >>> result.output, result.episode.results[0].value
        ('It is 3.', 3)
    """

    def __init__(
        self,
        model: ChatModel | str,
        *,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        library: Library | None = None,
        store: Store | str | None = None,
        store_policy: StorePolicy = StorePolicy(),  # noqa: B008 - immutable
        instructions: Instructions | Instruction[DepsT] | Sequence[Instruction[DepsT]] = "",
        deps_type: type[DepsT] = ANY_DEPS,
        output_type: type[OutputT] | JsonObject | None = None,
        retriever: Retriever | Literal["auto"] | None = "auto",
        selection: SelectionPolicy = SelectionPolicy(),  # noqa: B008 - immutable
        tool_policy: ToolPolicy = ToolPolicy(),  # noqa: B008 - immutable
        limits: Limits = Limits(),  # noqa: B008 - immutable
        refine: RefineMode | RefineSettings = "none",
        code_mode: bool = False,
        settings: ModelSettings = ModelSettings(),  # noqa: B008 - immutable
        router: Router | None = None,
        guardrails: Iterable[Guardrail[DepsT]] = (),
        history_processors: Iterable[HistoryProcessor[DepsT]] = (),
        observers: Iterable[Observer] = (),
        tracing: Tracing | None = None,
        name: str = "agent",
    ) -> None:
        given: object = tracing
        if given is not None and not isinstance(given, tracing_door.Tracing):
            shown = getattr(given, "__name__", type(given).__name__)
            raise UsageError(
                f"{shown} is no Tracing: give Tracing(), which takes OpenTelemetry's own provider "
                "as tracer_provider"
            )
        answers = resolve_model(model)
        self._owns_store = isinstance(store, str)
        self._store = library_door.open_store(store) if isinstance(store, str) else store
        said = Instructions.of(instructions)
        own = tuple(entry if isinstance(entry, Tool) else as_tool(entry) for entry in tools)
        for one in (*own, *(library or ())):
            if one.context is not None:
                check_tool_deps(one.name, one.context, deps_type)
        self._deps_type = deps_type
        self._libraries = LibraryProvider(
            store=self._store,
            library=library,
            tools=(*own, *said.tools),
            pin=store_policy.pin,
            frozen=store_policy.frozen,
            hides_unbound=tool_policy.unbound == "hide",
        )
        said.in_library(self._libraries.current)
        self._preparation = RunPreparation(
            libraries=self._libraries,
            store=self._store,
            router=router,
            approvals=PendingApprovals(self._store),
            agent=name,
        )
        asked = (getattr(one.function, "agent", None) for one in (*own, *(library or ())))
        self._asks = tuple(one for one in asked if isinstance(one, Agent))
        if limits.max_cost_usd is not None:
            for one in self._known_agents()[1:]:
                models_door.limit_price(one.model)
        self._queue = EpisodeQueue(self._store, on_failure=store_policy.on_failure)
        self._runner = AgentRunner(
            name=name,
            model=answers,
            queue=self._queue,
            instructions=said,
            selector=ToolSelector(retriever, policy=selection, tracing=tracing),
            execution=Execution(
                policy=tool_policy, limits=limits, tracing=tracing, queue=self._queue
            ),
            refinement=RefineSettings(mode=refine) if isinstance(refine, str) else refine,
            output_format=(
                None
                if output_type is None or output_type is str
                else agent_door.OutputFormat.of(output_type)
            ),
            code_mode=code_mode,
            settings=settings,
            price=None if limits.max_cost_usd is None else models_door.limit_price(answers),
            guardrails=tuple(guardrails),
            history_processors=tuple(history_processors),
            observers=tuple(observers),
            tracing=tracing,
        )

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._runner.name

    @property
    def model(self) -> ChatModel:
        """The model that answers."""
        return self._runner.model

    @property
    def deps_type(self) -> type[DepsT]:
        """The type of what runs are given as ``deps``."""
        return self._deps_type

    @property
    def store(self) -> Store | None:
        """Where episodes are kept, and libraries come from; None for nowhere."""
        return self._store

    @property
    def queue(self) -> EpisodeQueue:
        """Takes episodes to the store; its ``state`` says how that goes."""
        return self._queue

    @property
    def library(self) -> Library:
        """The snapshot that new runs are pinned to."""
        return self._libraries.current

    @property
    def binding(self) -> CodeBinding:
        """What binding the code of ``tools`` to the library came to, with notes for people."""
        return self._libraries.binding

    @property
    def output_schema(self) -> JsonObject | None:
        """The JSON Schema that final answers match; None when they are text."""
        wanted = self._runner.output_format
        return None if wanted is None else wanted.schema

    @property
    def tracing(self) -> Tracing | None:
        """Is told what runs do; its ``errors`` counts what exporters raised."""
        return self._runner.tracing

    def refresh(self) -> Library:
        """Take up the newest version from the store, for runs that start from now on."""
        return self._libraries.refresh()

    async def run(
        self, request: Request, **options: Unpack[RunOptions[DepsT]]
    ) -> RunResult[OutputT]:
        """Answer one request.

        Args:
            request: What the user says: a text, or texts with ``Image``, ``Audio`` and ``File``.
            options: Conversation, labels and settings of this run, see ``RunOptions``.

        Returns:
            The result. A run that stops at a limit, or waits for somebody, is a result too: see
            ``stop_reason``.

        Raises:
            RunError: The model failed for good; carries the episode, caused by a ``ModelError``.
            UsageError: A session was asked for without a store, or together with a history;
                ``deps`` is of another type than ``deps_type``; the model cannot take an image, or
                whatever else was sent.
            StoreUnavailableError: The store is away, and the library of this conversation or
                what was said in it is not at hand; or the store takes
                no episodes (``on_store_failure``). No model was asked, so the same call may be
                made again.
            EpisodeNotKeptError: The run ended and the store did not take its episode, which the
                error carries; it is tried again. The tools did what they did.
        """
        return await self._run(await self._start(request, **options))

    def run_sync(
        self, request: Request, **options: Unpack[RunOptions[DepsT]]
    ) -> RunResult[OutputT]:
        """``run`` for callers without an event loop.

        The loop that it makes ends with the run, so observers start nothing on it.

        Raises:
            UsageError: Called where an event loop is running; await ``run`` there.
        """

        async def run() -> RunResult[OutputT]:
            start = await self._start(request, **options)
            return await self._run(replace(start, ends_loop=True))

        return _bridge(run())

    async def stream(
        self, request: Request, **options: Unpack[RunOptions[DepsT]]
    ) -> AsyncGenerator[RunEvent, None]:
        """Answer one request and yield what happens; ``RunFinished`` comes last.

        Leaving the iteration early cancels the run. Arguments and errors are those of ``run``.
        """
        start = await self._start(request, **options)
        events = stream_events(lambda emit: self._run(replace(start, emit=emit)))
        async with aclosing(events):
            async for event in events:
                yield event

    def as_tool(
        self, *, name: str = "", description: str = "", timeout_seconds: float = 300.0
    ) -> Tool:
        """This agent as a tool of another agent, which asks it as a user would.

        It gets the caller's deps, and what it spends counts for the caller while it runs: it ends
        where the caller's limits on cost, tokens or calls do. Its run is an
        episode of its own, linked by the label ``parent_run``; calls of it that wait for a person
        are a failure that names the run, which can be resumed.

        Args:
            name: The tool's name; the agent's by default.
            description: What models read of it.
            timeout_seconds: Longest run.

        Example:
            >>> from agentkit import Agent
            >>> from agentkit.messages import ToolCall
            >>> from agentkit.testing import ScriptedModel
            >>> billing = Agent(ScriptedModel(["A17 costs 12 euros."]), name="billing")
            >>> call = ToolCall(call_id="1", name="billing", arguments={"request": "Price of A17?"})
            >>> desk = Agent(ScriptedModel([[call], "It is 12 euros."]), tools=[billing.as_tool()])
            >>> desk.run_sync("What does A17 cost?").episode.results[0].value
            'A17 costs 12 euros.'
        """
        return agent_door.agent_tool(self, name, description, timeout_seconds)

    def handoff(
        self, *, name: str = "", description: str = "", timeout_seconds: float = 300.0
    ) -> Tool:
        """A tool by which another agent hands its conversation over to this one.

        This agent sees the history, the request and what was called since, gets the caller's deps
        and what is left of its limits, and its answer ends the run. Its run is an episode of its
        own, linked by the labels ``parent_run`` and ``handed_over_by``. Where it does not come to
        an answer, and where it had the conversation before, the call fails and the caller goes on.

        Args:
            name: The tool's name; ``transfer_to_`` and the agent's by default.
            description: What models read of it.
            timeout_seconds: Longest run.

        Example:
            >>> from agentkit import Agent
            >>> from agentkit.messages import ToolCall
            >>> from agentkit.testing import ScriptedModel
            >>> billing = Agent(ScriptedModel(["A17 costs 12 euros."]), name="billing")
            >>> call = ToolCall(call_id="1", name="transfer_to_billing", arguments={})
            >>> desk = Agent(ScriptedModel([[call]]), tools=[billing.handoff()])
            >>> desk.run_sync("What does A17 cost?").output
            'A17 costs 12 euros.'
        """
        return agent_door.handoff_tool(self, name, description, timeout_seconds)

    @property
    def limits(self) -> Limits:
        """The limits of its runs."""
        return self._runner.execution.limits

    def is_run_by(self, runner: object) -> bool:
        """Whether a chain of hand-offs names this agent by its runner."""
        return runner is self._runner

    async def take_over(self, start: RunStart) -> RunResult[OutputT]:
        """Go on with a conversation that another agent hands over; see ``handoff``.

        Args:
            start: The conversation, with what is left of that agent's limits.

        Raises:
            RunError: As for ``run``.
        """
        await self._queue.check()
        check_deps(start.deps, self._deps_type)
        start = replace(start, library=self._libraries.for_run())
        return await self._run(await self._preparation.of_request(start, start.history))

    async def resume(
        self, waiting: RunResult[OutputT] | Episode, **options: Unpack[ResumeOptions[DepsT]]
    ) -> RunResult[OutputT]:
        """Go on with a run whose calls were deferred.

        Args:
            waiting: The result, or its episode, whose ``stop_reason`` is ``deferred``.
            **options: See ``ResumeOptions``.

        Raises:
            OtherAgentError: The run is of an agent that is neither this one nor one that it asks
                or hands over to, or an approved tool is not as it was; nothing was decided.
            AnsweredBeforeError: The run was answered before; nothing runs twice.
            UsageError: A waiting call got neither a decision nor a value, or an id is unknown; a
                decision is neither a bool nor an ``Approval``; a value is for a call that waits for
                a decision; the episode is not as the store, or without one this agent, knows it;
                ``deps`` is of another type than ``deps_type``.
            StoreError: The store did not take the answer; nothing ran, so it may be given again.
            RunError: As for ``run``.
        """
        agent = self.resumed_by(waiting)
        return await agent._resumed(waiting, options, ignore)  # noqa: SLF001 - ours

    async def stream_resume(
        self, waiting: RunResult[OutputT] | Episode, **options: Unpack[ResumeOptions[DepsT]]
    ) -> AsyncGenerator[RunEvent, None]:
        """Go on as ``resume`` does, and yield what happens; ``RunFinished`` comes last."""
        resumed = self.resumed_by(waiting)._resumed  # noqa: SLF001 - ours
        events = stream_events(lambda emit: resumed(waiting, options, emit))
        async with aclosing(events):
            async for event in events:
                yield event

    def resumed_by(self, waiting: RunResult[Any] | Episode) -> Agent[Any, Any]:
        """The agent that a waiting run is of: one that this one asks, or else this one itself."""
        labels = (waiting.episode if isinstance(waiting, RunResult) else waiting).metadata
        known = self._known_agents()
        named = [one for one in known if one.name == labels.get(WAITING_AGENT, self.name)]
        return named[-1 if agent_door.PARENT_LABEL in labels else 0] if named else self

    def _known_agents(self) -> list[Agent[Any, Any]]:
        """This agent, those that it asks or hands over to, and those that they do."""
        known: list[Agent[Any, Any]] = [self]
        for one in known:
            known += [asked for asked in one._asks if asked not in known]  # noqa: SLF001 - ours
        return known

    async def _resumed(
        self,
        waiting: RunResult[OutputT] | Episode,
        options: ResumeOptions[DepsT],
        emit: Emit,
    ) -> RunResult[OutputT]:
        start, answers = await self._resumption(waiting, **options)
        return await self._run(replace(start, emit=emit), answers)

    async def _resumption(
        self,
        waiting: RunResult[OutputT] | Episode,
        *,
        deps: DepsT | None = None,
        approvals: Mapping[str, Decision] | None = None,
        values: Mapping[str, object] | None = None,
        history: Sequence[Message] = (),
        settings: ModelSettings | None = None,
    ) -> tuple[RunStart, DeferredResults]:
        await self._queue.check()
        check_deps(deps, self._deps_type)
        episode = waiting.episode if isinstance(waiting, RunResult) else waiting
        answers = DeferredResults(episode=episode, approvals=approvals or {}, values=values or {})
        start = RunStart(
            request="",
            library=self._libraries.for_run(),
            deps=deps,
            settings=settings,
            episode_id=continuation_id(episode.episode_id),
        )
        start = await self._preparation.of_answers(
            start,
            waiting,
            history,
            approves=any(as_approval(one).approved for one in answers.approvals.values()),
        )
        return replace(start, within=spent_before(episode, self.limits)), answers

    async def _run(self, start: RunStart, answers: DeferredResults | None = None) -> RunResult:
        result = await self._runner.run(start, answers)
        self._preparation.approvals.remember(result)
        return result

    async def close(self) -> None:
        """Keep what waits, close the model's connections, and the store if the agent opened it.

        Episodes that the store does not take even now are in ``queue.waiting``.
        """
        await asyncio.to_thread(self._queue.flush, _CLOSE_SECONDS)
        close = getattr(self.model, "close", None)
        closing = None if close is None else close()
        if inspect.isawaitable(closing):  # a model with connections closes them asynchronously
            await closing
        if self._owns_store and self._store is not None:
            await asyncio.to_thread(self._store.close)

    async def _start(
        self,
        request: Request,
        *,
        deps: DepsT | None = None,
        history: Sequence[Message] | RunResult[Any] = (),
        session_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        settings: ModelSettings | None = None,
        episode_id: str | None = None,
        within: RunContext[Any] | None = None,
    ) -> RunStart:
        await self._queue.check()
        check_deps(deps, self._deps_type)
        media: tuple[Media, ...] = ()
        if not isinstance(request, str):
            request, media = placed([request] if isinstance(request, Media) else request)
        start = RunStart(
            request=request,
            media=media,
            library=self._libraries.for_run(),
            deps=deps,
            session_id=session_id,
            metadata=(metadata or {})
            if within is None
            else agent_door.linked_labels(within, metadata or {}),
            settings=settings,
            episode_id=episode_id or new_episode_id(),
            within=None if within is None else within.facts,
        )
        return await self._preparation.of_request(start, history)


def _bridge(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from code that has no event loop: the one bridge from sync to async."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(coroutine)
    coroutine.close()
    raise UsageError("run_sync was called inside a running event loop; use 'await agent.run(...)'")
