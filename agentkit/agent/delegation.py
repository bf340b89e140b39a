"""An agent as a tool of another one, or as the one that it hands over to; episodes are linked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, Unpack

from agentkit import composites  # a door
from agentkit.agent.session import RunStart
from agentkit.agent.types import Limits, RunOptions, RunResult
from agentkit.episodes.labels import CONVERSATION, KEY_LABEL, REQUEST_LABEL, WITNESS
from agentkit.errors import RunError, ToolFailed
from agentkit.library.library import Library
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects
from agentkit.tools.invocation import RunContext, RunFacts
from agentkit.tools.tool import Tool

PARENT_LABEL, DEPTH_LABEL = "parent_run", "delegation_depth"
"""Labels of an episode that another run asked for: that run's id, and how many stand above it."""

HANDED_OVER_BY = "handed_over_by"
"""Label of an episode in which an agent took a conversation over: the name of the one before."""

_DEEPEST = 8
_SHARED_LABELS = ("user", KEY_LABEL, REQUEST_LABEL, WITNESS)
"""Labels that a run hands down: who asks. Others are of its own experiment or evaluation."""


class Delegate(Protocol):
    """An ``Agent``, as far as one that asks it needs to know."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def library(self) -> Library:
        """Its tools."""
        ...

    @property
    def deps_type(self) -> type[Any]:
        """The type of its deps."""
        ...

    async def run(self, request: str, **options: Unpack[RunOptions[Any]]) -> RunResult[Any]:
        """Answer one request."""
        ...


class TakesOver(Delegate, Protocol):
    """An ``Agent``, as far as one that hands a conversation over to it needs to know."""

    @property
    def limits(self) -> Limits:
        """Its own limits."""
        ...

    def is_run_by(self, runner: object) -> bool:
        """Whether these are its runs."""
        ...

    async def take_over(self, start: RunStart) -> RunResult[Any]:
        """Go on with a conversation."""
        ...


def linked_labels(facts: RunContext[Any] | RunFacts, further: Mapping[str, str]) -> dict[str, str]:
    """Labels of a run that another one asks for."""
    above = facts.metadata
    shared = {label: above[label] for label in _SHARED_LABELS if label in above}
    conversation = above.get(CONVERSATION) or facts.session_id or facts.run_id
    return {**shared, **further, PARENT_LABEL: facts.run_id, CONVERSATION: conversation}


def handoff_tool(agent: TakesOver, name: str, description: str, timeout_seconds: float) -> Tool:
    """A tool that hands the conversation over to the agent; see ``Agent.handoff``."""
    called = name or f"transfer_to_{agent.name}"
    summary = description or (
        f"Hand the conversation over to the agent {agent.name}, which sees all of it and answers."
    )

    async def transfer(ctx: RunContext[Any]) -> Any:
        try:
            result = await ctx.hand_over(agent)
        except RunError as error:
            raise ToolFailed(f"{agent.name} could not answer: its model failed") from error
        _answer(result, agent.name)
        return {"agent": agent.name, "run": result.episode.episode_id}

    return _agents_tool(transfer, agent, called, summary, timeout_seconds)


def _agents_tool(
    function: Callable[..., Any], agent: Delegate, name: str, summary: str, seconds: float
) -> Tool:
    function.__annotations__["ctx"] = RunContext[agent.deps_type]  # type: ignore[name-defined]
    function.agent = agent  # type: ignore[attr-defined]  # resumes what waits inside
    made = tool(
        function,
        name=name,
        description=summary,
        effects=_effects(agent),
        timeout_seconds=seconds,
        requires_approval=False,  # its own calls ask
    )
    origin = replace(made.definition.origin, kind="agent")  # a model speaks, and no code
    return replace(made, definition=replace(made.definition, origin=origin))


def agent_tool(agent: Delegate, name: str, description: str, timeout_seconds: float) -> Tool:
    """The agent as a tool that takes a request and gives the answer; see ``Agent.as_tool``."""
    called = name or agent.name
    summary = description or f"Ask the agent {agent.name}, which sees nothing but the request."

    async def ask(ctx: RunContext[Any], request: str) -> Any:
        depth = _depth(ctx)
        if depth > _DEEPEST:
            raise ToolFailed(
                f"{called} was not asked: {_DEEPEST} agents stand above it, and some ask each "
                "other in a circle; answer without it"
            )
        labels = {DEPTH_LABEL: str(depth)}  # the others are those of a run within another one
        try:
            result = await agent.run(request, deps=ctx.deps, metadata=labels, within=ctx)
        except RunError as error:
            raise ToolFailed(f"{called} could not answer: its model failed") from error
        return _answer(result, called)

    return _agents_tool(ask, agent, called, summary, timeout_seconds)


def _depth(ctx: RunContext[Any]) -> int:
    above = ctx.metadata.get(DEPTH_LABEL, "0")
    return int(above) + 1 if above.isascii() and above.isdigit() and len(above) < 4 else 1


def _effects(agent: Delegate) -> Effects:
    """What running it does: what its tools do, one of which the model may choose to call twice."""
    together = composites.join_effects(one.definition.signature.effects for one in agent.library)
    return replace(together, idempotent=None)


def _answer(result: RunResult[Any], name: str) -> Any:
    if result.stop_reason == "finished":
        return result.output if isinstance(result.output, str) else result.episode.output
    if result.stop_reason == "deferred":
        waiting = ", ".join(call.name for call in result.deferred)
        raise ToolFailed(
            f"{name} has not finished: its calls of {waiting} wait for a person or a value; its "
            f"run is {result.episode.episode_id}"
        )
    raise ToolFailed(f"{name} has not finished: its run ended with {result.stop_reason}")
