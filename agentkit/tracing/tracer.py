"""The seam of tracing: ``Tracer``, one method, and the ``Span`` that it gives, three.

An agent without a tracer does none of this. What a tracer raises never reaches a run, see
``agentkit.tracing.tracing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agentkit.episodes import Episode
from agentkit.library.library import Library
from agentkit.messages import Message, ToolCall, ToolResult
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.retrieval.retriever import Retrieval
from agentkit.tools.tool import Tool

GuardrailName = Literal["validation", "contract", "postcondition", "approval"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOperation:
    """One run of an agent.

    Attributes:
        agent: Its name.
        model: Answers.
        episode_id: Id of the episode that the run will be.
        request: What the user says; empty when a run is resumed.
        history: The conversation before it.
        instructions: The system message.
        library: The pinned snapshot.
        conversation_id: Conversation that it belongs to, if any.
        resumes: Id of the episode whose waiting calls are answered.
        wants_json: Whether the answer has to match a schema.
    """

    agent: str
    model: ChatModel
    episode_id: str
    request: str
    history: tuple[Message, ...]
    instructions: str
    library: Library
    conversation_id: str | None = None
    resumes: str | None = None
    wants_json: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatOperation:
    """One request to a model, with all its retries.

    Attributes:
        model: Answers.
        request: What it is asked.
        conversation_id: Conversation that it belongs to, if any.
        refinement: Which round of refinement it is, from 1; 0 for the direct question.
        streams: Whether the answer is read while it is written.
    """

    model: ChatModel
    request: ModelRequest
    conversation_id: str | None = None
    refinement: int = 0
    streams: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOperation:
    """One call of a tool, with its checks and all its attempts.

    Attributes:
        call: What the model wrote.
        tool: The tool; None when none of that name is offered.
        library: The pinned snapshot.
    """

    call: ToolCall
    tool: Tool | None
    library: Library


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildOperation:
    """One call that a composite made.

    Attributes:
        call: The call; its ``call_id`` says where in the composite it stands.
        tool: The tool; None when the library has none of that name.
        library: The pinned snapshot.
        level: How many composites it stands in; 1 for a call by the one that the model called.
    """

    call: ToolCall
    tool: Tool | None
    library: Library
    level: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalOperation:
    """One search for tools.

    Attributes:
        query: What is searched for.
        library: Where.
    """

    query: str
    library: Library


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardrailOperation:
    """One check that stands before a call, or after it.

    Attributes:
        name: ``validation`` of the arguments, ``contract`` (learned rules and preconditions),
            ``postcondition``, or ``approval`` by a person.
        tool: The tool's name.
    """

    name: GuardrailName
    tool: str


Operation: TypeAlias = (
    RunOperation
    | ChatOperation
    | ToolOperation
    | ChildOperation
    | RetrievalOperation
    | GuardrailOperation
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildResult:
    """What a call inside a composite returned.

    Attributes:
        value: JSON data.
    """

    value: object


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardrailVerdict:
    """What a check decided.

    Attributes:
        allowed: Whether the call may go on.
        cause: Why not, as a word that is no content: a kind of failure, or the name of a rule.
    """

    allowed: bool
    cause: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry:
    """One request to a model that failed and is sent again.

    Attributes:
        error: What it met.
        failures: How many have failed so far, this one included.
        delay_seconds: Wait before the next one.
        at_ns: When, in nanoseconds since 1970.
    """

    error: BaseException
    failures: int
    delay_seconds: float
    at_ns: int


Value: TypeAlias = (
    Episode | ModelResponse | ToolResult | Retrieval | ChildResult | GuardrailVerdict | None
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How an operation ended.

    Attributes:
        value: What it gave: an ``Episode`` for a run (also for one that failed), a
            ``ModelResponse``, a ``ToolResult``, a ``Retrieval``, a ``ChildResult``, a
            ``GuardrailVerdict``; None when there is nothing.
        error: What it raised; None when it returned.
        retries: For a request to a model: what was sent again.
        first_text_ns: For a streamed answer: when its first piece came, since 1970.
    """

    value: Value = None
    error: BaseException | None = None
    retries: tuple[Retry, ...] = ()
    first_text_ns: int | None = None


ChildSpans = Literal["all", "errors", "off"]
"""Which calls inside composites are told: all of them, those of composites that failed, or none."""


class Span(Protocol):
    """One operation that has begun."""

    @property
    def ids(self) -> Mapping[str, str]:
        """Labels by which the operation is found again; an episode keeps those of its run."""
        ...

    def activate(self) -> object:
        """Make this the parent of what begins from now on in the current context.

        Returns:
            What ``deactivate`` needs.
        """
        ...

    def deactivate(self, token: object) -> None:
        """Undo ``activate``, in the context in which it was called."""
        ...

    def end(self, outcome: Outcome, *, at_ns: int | None = None) -> None:
        """The operation is over; called exactly once.

        Args:
            outcome: What came of it.
            at_ns: When, in nanoseconds since 1970; None for now.
        """
        ...


class Tracer(Protocol):
    """Is told what an agent does while it does it. One serves any number of agents and runs.

    Its methods are called on the event loop of the run and have to return at once: hand what you
    have to send to a queue.
    """

    @property
    def child_spans(self) -> ChildSpans:
        """Which calls inside composites are told."""
        ...

    def start(
        self, operation: Operation, *, at_ns: int | None = None, parent: Span | None = None
    ) -> Span:
        """An operation begins.

        Args:
            operation: What.
            at_ns: When it began, in nanoseconds since 1970; None for now.
            parent: What it is a part of; None for the one that is active in this context.
        """
        ...
