"""What ``Agent.stream`` yields, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.agent.result import RunResult
from agentkit.episodes import RefineTrace, RetrievalTrace, Turn
from agentkit.messages import ToolCall, ToolResult
from agentkit.models.base import TextDelta


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
class TurnFinished:
    """One model step and its calls are complete."""

    turn: Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFinished:
    """The run is over; always the last event."""

    result: RunResult


RunEvent: TypeAlias = (
    TextDelta
    | RunStarted
    | ToolsRetrieved
    | CallsRefined
    | ToolCallStarted
    | ToolCallFinished
    | TurnFinished
    | RunFinished
)
Emit: TypeAlias = Callable[[RunEvent], None]


def ignore(event: RunEvent) -> None:
    """Where events go when nobody listens."""
