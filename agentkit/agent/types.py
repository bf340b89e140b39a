"""What an agent is told, and what a run gives back: policies, limits, events, results."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, get_args

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes import Episode, RefineMode, RefineTrace, RetrievalTrace, StopReason, Turn
from agentkit.errors import UsageError
from agentkit.library.library import Library
from agentkit.media import Media
from agentkit.messages import Message, ToolCall, ToolResult, Usage
from agentkit.models.base import (
    ChatModel,
    ModelRequest,
    ModelSettings,
    ReasoningDelta,
    TextDelta,
    ToolChoice,
)
from agentkit.tools.definition import INSTRUCTIONS, Description, Origin, ToolDefinition
from agentkit.tools.invocation import DepsT, OutputT, RunContext, RunFacts
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult(Generic[OutputT]):
    """The outcome of one run.

    Attributes:
        output: The answer: text, or an instance of the agent's ``output_type``. None when the
            run stopped before there was one.
        episode: The full record.
        messages: The whole conversation, history included; pass it as ``history`` to go on.
        is_kept: Whether the store has the episode, where there is one. False only with an agent
            that goes on while its store fails; see ``StorePolicy``.
    """

    output: OutputT
    episode: Episode
    messages: tuple[Message, ...]
    is_kept: bool = True

    @property
    def text(self) -> str:
        """The text of the model's last message; empty when a guardrail blocked it."""
        turns = () if self.stop_reason == "blocked" else self.episode.turns
        return turns[-1].message.text if turns else ""

    @property
    def stop_reason(self) -> StopReason:
        """Why the run ended."""
        return self.episode.stop_reason

    @property
    def usage(self) -> Usage:
        """All model use of the run."""
        return self.episode.usage

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every call that the model made, in order."""
        return self.episode.calls

    @property
    def deferred(self) -> tuple[ToolCall, ...]:
        """Calls that wait for an approval or for an answer from outside; see ``Agent.resume``."""
        return deferred_calls(self.episode)


Request: TypeAlias = str | Media | Sequence[str | Media]
"""What a user says: a text, or texts and media in order."""


class RunOptions(TypedDict, Generic[DepsT], total=False):
    """What ``Agent.run``, ``run_sync`` and ``stream`` take beside the request.

    Attributes:
        deps: What tools find in ``RunContext.deps``: a database handle, who the user is. It is
            not stored.
        session_id: Continue this conversation; its earlier episodes are read from the store and
            its library version is kept.
        history: What was said before, for callers who keep the conversation themselves: the
            result of the last run, or messages. The result also tells which tools were offered,
            so that these stay and prompt caches hold.
        metadata: Labels to keep with the episode.
        settings: How to generate this time; what it leaves open is as the agent has it.
        episode_id: The id that the episode will have, for callers who must tell it before the run
            ends; unique in the store, as ``new_episode_id`` makes them. None makes one.
        within: The context of a tool that asks: what the run spends counts for that run while it
            goes on, and is bounded by its limits on cost, tokens and calls.
    """

    deps: DepsT
    session_id: str | None
    history: Sequence[Message] | RunResult[Any]
    metadata: Mapping[str, str] | None
    settings: ModelSettings | None
    episode_id: str | None
    within: RunContext[Any] | None


class ResumeOptions(TypedDict, Generic[DepsT], total=False):
    """What ``Agent.resume`` and ``stream_resume`` take beside the run that waits.

    Attributes:
        deps: As for ``run``.
        approvals: Decisions by call id; an approved call runs now.
        values: Results by call id, for calls that wait for one from outside this process. Without
            approvals beside them, calls that need some wait on.
        history: The messages before the run when they are in no store.
        settings: As for ``run``.
    """

    deps: DepsT | None
    approvals: Mapping[str, Decision] | None
    values: Mapping[str, object] | None
    history: Sequence[Message]
    settings: ModelSettings | None


WAITS_FOR_PERSON = "{name} waits for a person's approval; it has not run."
"""Text of a call that a person has to approve."""


def asks_person(result: ToolResult) -> bool:
    """Whether a call waits for a person's decision, and not for a value."""
    return result.text == WAITS_FOR_PERSON.format(name=result.name)


def deferred_calls(episode: Episode) -> tuple[ToolCall, ...]:
    """Calls of the last turn that have no result yet; of a program those that it waits for."""
    return tuple(call for call, _ in waiting_calls(episode))


def waiting_calls(episode: Episode) -> tuple[tuple[ToolCall, ToolResult], ...]:
    """The calls of ``deferred_calls``, each with what stands for its result.

    One that a person decides on has the arguments that would run, which a guardrail may have put
    in the place of the model's.
    """
    if not episode.turns:
        return ()
    last = episode.turns[-1]
    programs = {one.program for one in last.program_calls}
    return tuple(
        (call if result.value is None else replace(call, arguments=result.value), result)
        for call, result in last.steps()
        if result is not None and result.status == "deferred" and call.call_id not in programs
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one run may spend, with the runs of agents that it asks; None means no bound.

    A run that waited and goes on has what it left of its calls, tokens and costs; steps count anew.

    Attributes:
        max_steps: Model turns. Refinement rounds belong to their turn.
        max_calls: Tool calls started. Further ones fail with a reason that the model reads; then it
            is asked to answer without calls (``tool_choice="none"``).
        max_tokens: Tokens read and written, checked after each turn.
        max_cost_usd: Price, checked after each turn, by what the model states or else by the table
            of prices at hand. Where no price is known, making the agent is an error.
        max_result_chars: Longest text of one result that the model reads; the episode keeps the
            whole value.
    """

    max_steps: int = 10
    max_calls: int = 50
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_result_chars: int | None = 50_000

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise UsageError(f"max_steps is {self.max_steps}; a run needs at least one step")
        for name in ("max_calls", "max_tokens", "max_cost_usd", "max_result_chars"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise UsageError(f"{name} is {value}; use 0 or more, or None for no bound")

    def reached(self, *, steps: int, usage: Usage) -> StopReason | None:
        """The limit that stops another turn, or None."""
        if self.max_tokens is not None and usage.total_tokens >= self.max_tokens:
            return "token_limit"
        if self.max_cost_usd is not None and (usage.cost_usd or 0.0) >= self.max_cost_usd:
            return "cost_limit"
        return "step_limit" if steps >= self.max_steps else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """A person's decision on one call.

    Attributes:
        approved: Whether the call may run.
        reason: Why not, in words that the model reads.

    Raises:
        UsageError: ``approved`` is neither True nor False.
    """

    approved: bool
    reason: str = ""

    def __post_init__(self) -> None:
        said: object = self.approved
        if not isinstance(said, bool):
            raise UsageError(
                f"{said!r:.100} is no decision on a call; an approval is True, False or "
                "Approval(approved=False, reason='...')"
            )


Decision: TypeAlias = Approval | bool
Approver: TypeAlias = Callable[[ToolCall, Tool], Decision | Awaitable[Decision]]
"""Decides on one call; sync or async. Without an approver such calls end the run as deferred."""


class AskedLater(Exception):  # noqa: N818 - a signal to the executor, which catches it
    """Raised by an approver that can not say yet: the call is deferred, as without an approver.

    A program whose call is deferred raises it, too.
    """


def as_approval(decision: Decision) -> Approval:
    """A plain yes or no as an ``Approval``.

    Raises:
        UsageError: It is neither. Nothing else is a yes: the text "no" would be one.
    """
    return decision if isinstance(decision, Approval) else Approval(approved=decision)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPolicy:
    """How tools are called, where a tool does not say otherwise.

    Attributes:
        choice: Whether the model may, must not or must call a tool. ``required`` holds for the
            first turn; afterwards the model may answer.
        unbound: ``hide`` offers only tools that can run in this process; ``offer`` hands a call of
            any other to the caller (``RunResult.deferred``).
        approve: Asks a person about calls that need it; without it such calls are deferred.
        timeout_seconds: Longest run of one attempt.
        retries: Per tool and run: how often a tool is run again that fails, whether the model tries
            again or the runtime; a success gives them back. A call that ``ToolFailed`` ended is
            never run again.
        repeats: How often a call that raised is made again without asking the model, where the
            tool is safe to repeat; no more than it has retries. Waits double, so this is a small
            number even where the model may try for as long as it likes.
        backoff_seconds: Wait before the first repeat; doubles each time.
        sleep: How to wait; a test passes its own.
        expose_errors: Show the model the text of every exception of a tool, for development;
            otherwise it reads only what was meant for it, see ``agentkit.agent.checks``.
        contracts: ``always`` checks the pre- and postconditions of every tool that the model
            calls; a broken one is a failed call that says which and why.
    """

    choice: ToolChoice = "auto"
    unbound: Literal["offer", "hide"] = "offer"
    approve: Approver | None = None
    timeout_seconds: float = 30.0
    retries: int = 1
    repeats: int = 3
    backoff_seconds: float = 0.2
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    expose_errors: bool = False
    contracts: Literal["off", "always"] = "off"

    def __post_init__(self) -> None:
        if self.timeout_seconds <= 0:
            raise UsageError(
                f"a call may take {self.timeout_seconds:g} seconds, so that each would be stopped "
                "before it began; give more than 0, or math.inf for no bound"
            )
        if self.retries < 0:
            raise UsageError(f"a tool has {self.retries} retries; give 0 or more")
        if self.repeats < 0:
            raise UsageError(f"a call has {self.repeats} repeats; give 0 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionPolicy:
    """How the tools of a large library are offered.

    Attributes:
        search_tool: Whether a model that is offered a part of the library can ask for more, with a
            tool named ``search_tools``. A library that has a tool of that name keeps it instead.
        examples: How many worked calls (L4) of each offered tool the model reads, at most. They are
            learned from what went well; long ones are left out.
    """

    search_tool: bool = True
    examples: int = 0


_PLAIN_NAME = re.compile(rf"(?!{INSTRUCTIONS}/$)(?:{INSTRUCTIONS}/)?\S(?:.{{0,98}}\S)?")
Instruction: TypeAlias = str | Callable[[RunContext[DepsT]], str | Awaitable[str]]
"""A text of the system message, or a function that gives one for a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Instructions:
    """The system message of an agent.

    With a name, the text is a definition of the library, with versions like those of a tool:
    ``instructions/NAME``. A library that has none gets the text; then agents read the library's,
    for which evolution may propose other words.

    Attributes:
        text: The part that is the same for all runs; it comes first.
        functions: Give the other parts, in this order.
        name: Where the library keeps the text; empty for a text that stays as it is. With a name
            and no text, the library must have one. At most 100 visible characters.

    Raises:
        UsageError: The name cannot be one.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit.testing import ScriptedModel
        >>> said = Instructions(name="support", text="You help customers of a garage.")
        >>> agent = Agent(ScriptedModel(["Hello."]), instructions=said)
        >>> agent.library["instructions/support"].definition.text
        'You help customers of a garage.'
        >>> agent.run_sync("Hi").episode.metadata["instructions"]
        'instructions/support'
    """

    text: str = ""
    functions: tuple[Callable[[RunContext[Any]], Any], ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        name: object = self.name
        is_plain = isinstance(name, str) and name.isprintable()
        if not is_plain or (name and not _PLAIN_NAME.fullmatch(self.name)):
            raise UsageError(
                f"{name!a:.200} cannot name instructions; give at most 100 visible characters, "
                "without blanks around them"
            )

    @classmethod
    def of(
        cls, given: Instructions | Instruction[Any] | Sequence[Instruction[Any]]
    ) -> Instructions:
        """From one text or function, or several."""
        if isinstance(given, Instructions):
            return given
        parts: list[Any] = [given] if isinstance(given, str) or callable(given) else list(given)
        texts = [part for part in parts if isinstance(part, str)]
        functions = tuple(part for part in parts if not isinstance(part, str))
        if odd := next((one for one in functions if not callable(one)), None):
            raise UsageError(f"instructions are texts and functions of a RunContext; got {odd!r}")
        return cls(text="\n\n".join(filter(None, texts)), functions=functions)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The definition that a library without one gets, in the form in which it keeps it."""
        if not (self.name and self.text):
            return ()
        words, origin = Description(summary=self.text), Origin(kind=INSTRUCTIONS)
        return (
            Tool(definition=ToolDefinition(name=self._place, description=words, origin=origin)),
        )

    @property
    def _place(self) -> str:
        return f"{INSTRUCTIONS}/{self.name.removeprefix(f'{INSTRUCTIONS}/')}"

    def in_library(self, library: Library) -> ToolDefinition | None:
        """The definition that a run reads; None for a text without a name.

        Raises:
            UsageError: The library has none of that name.
        """
        if not self.name:
            return None
        held = library.get(self._place)
        if held is None:
            raise UsageError(
                f"library version {library.version} has no {self._place!r}; give the text too: "
                f"Instructions(name={self.name!r}, text='...')"
            )
        return held.definition

    async def for_run(self, facts: RunFacts, library: Library) -> str:
        """The whole message for one run.

        Raises:
            UsageError: A function gives something else than a text.
        """
        held = self.in_library(library)
        text = self.text if held is None else held.text
        if not self.functions:
            return text
        texts = [text]
        context: RunContext[Any] = RunContext(run=facts)
        for function in self.functions:
            made = function(context)
            text = await made if inspect.isawaitable(made) else made
            if not isinstance(text, str):
                name = getattr(function, "__name__", repr(function))
                raise UsageError(f"the instructions {name} gave {text!r:.80}; return a text")
            texts.append(text)
        return "\n\n".join(filter(None, texts))


REFINE_PROMPT = (
    "Please refine your answer. Directly output the refined answer, or the original answer if you "
    "think it is already perfect."
)
"""The prompt of ToolACE-R, Figure 6."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineSettings:
    """How proposals are refined.

    Attributes:
        mode: The strategy; ``none`` asks once.
        max_refinements: Most rounds after the direct answer (n in Algorithm 1; the paper uses 5).
        prompt: What the model is asked in each round.
    """

    mode: RefineMode = "none"
    max_refinements: int = 5
    prompt: str = REFINE_PROMPT

    def __post_init__(self) -> None:
        if self.mode not in get_args(RefineMode):
            known = ", ".join(get_args(RefineMode))
            raise UsageError(f"refine is {self.mode!r}; use one of {known}")
        if self.max_refinements < 0:
            raise UsageError(f"max_refinements is {self.max_refinements}; use 0 or more")


OnStoreFailure: TypeAlias = Literal["refuse_runs", "refuse_writes", "continue"]
"""What an agent does while its store takes no episodes: begin no run, run only tools that are
declared read-only, or go on as if nothing were wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StorePolicy:
    """How an agent uses its store.

    Attributes:
        pin: A version of the store's library that every run uses; None for the newest.
        frozen: Refuse to start where the code and the store's library differ.
        on_failure: What to do while the store takes no episodes. They stay in memory and are tried
            again, and the agent recovers by itself. A run under way runs no tool that may write
            meanwhile, unless the agent goes on.
    """

    pin: int | None = None
    frozen: bool = False
    on_failure: OnStoreFailure = "refuse_runs"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStarted:
    """The run is pinned to a library; always the first event.

    Attributes:
        library_version: Which version.
        labels: The labels that its episode will have, with those of a router.
    """

    library_version: int
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolsRetrieved:
    """The tools to offer were chosen."""

    trace: RetrievalTrace


@dataclass(frozen=True, kw_only=True, slots=True)
class CallsRefined:
    """The model settled on its calls; they have not run yet."""

    trace: RefineTrace


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallStarted:
    """A call is about to be validated and run."""

    call: ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallFinished:
    """A call has its result, good or bad."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProgress:
    """A tool said how far a call is, with ``RunContext.progress``."""

    call_id: str
    tool_name: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HandedOver:
    """Another agent goes on with the conversation; the events that follow are of its run.

    Attributes:
        agent: Its name.
        run_id: Id of the episode that its run will be.
    """

    agent: str
    run_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFinished:
    """One model step and its calls are complete."""

    turn: Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFinished:
    """The run is over; always the last event."""

    result: RunResult


RunEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | RunStarted
    | ToolsRetrieved
    | CallsRefined
    | ToolCallStarted
    | ToolProgress
    | ToolCallFinished
    | HandedOver
    | TurnFinished
    | RunFinished
)
Emit: TypeAlias = Callable[[RunEvent], None]


def ignore(event: RunEvent) -> None:
    """Where events go when nobody listens."""


logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """A run that gave a result, with what it takes to ask the same once more.

    Attributes:
        result: What the caller gets.
        library: The snapshot that the run was pinned to.
        model: The model that answered.
        request: What the model was asked first, but for the results of calls; None for a run that
            was resumed in the middle.
        refinement: How calls were refined.
        ends_loop: Whether the event loop ends with this run, as it does for ``run_sync``: what an
            observer starts on it would be cancelled right away.
    """

    result: RunResult
    library: Library
    model: ChatModel
    request: ModelRequest | None
    refinement: RefineSettings
    ends_loop: bool = False


class Observer(Protocol):
    """Is told of every run that gave a result. ``agentkit.evolution.serving`` holds some."""

    def observe(self, run: FinishedRun) -> None:
        """Take notice, on the event loop of the run and before its caller goes on.

        So nothing may be waited for here: put the run on a queue and return. An exception is
        logged, and the run goes on as if nothing was.
        """
        ...


def tell(observers: Sequence[Observer], run: FinishedRun) -> None:
    """Tell each observer, and keep its errors from the run."""
    for observer in observers:
        try:
            observer.observe(run)
        except Exception as error:  # noqa: BLE001 - logged
            message = "the observer %s failed on episode %s, which was answered all the same"
            about = (type(observer).__name__, run.result.episode.episode_id)
            episodes.log_failure(logger, error, message, *about)


class NoSpan:
    """What stands in for a span where nobody traces."""

    ids: Mapping[str, str] = {}
    first_text_ns: int | None = 0
    value: object = None

    def __setattr__(self, name: str, value: object) -> None:
        """Keep nothing: one object serves all runs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


NO_SPAN = NoSpan()
