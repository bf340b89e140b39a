"""``agent_tool``: an agent as a tool of another one, with linked episodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Unpack

from agentkit.agent.types import RunOptions, RunResult
from agentkit.episodes.labels import CONVERSATION
from agentkit.errors import RunError, ToolFailed
from agentkit.library.library import Library
from agentkit.tools.decorator import tool
from agentkit.tools.definition import EffectName
from agentkit.tools.invocation import RunContext
from agentkit.tools.tool import Tool

PARENT_LABEL, DEPTH_LABEL = "parent_run", "delegation_depth"
"""Labels of an episode that another run asked for: that run's id, and how many stand above it."""

_DEEPEST = 8
_SHARED_LABELS = ("user", "key")
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


def agent_tool(
    agent: Delegate,
    *,
    name: str = "",
    description: str = "",
    timeout_seconds: float = 300.0,
) -> Tool:
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
        shared = {label: ctx.metadata[label] for label in _SHARED_LABELS if label in ctx.metadata}
        conversation = ctx.metadata.get(CONVERSATION) or ctx.session_id or ctx.run_id
        links = {PARENT_LABEL: ctx.run_id, DEPTH_LABEL: str(depth), CONVERSATION: conversation}
        labels = {**shared, **links}
        try:
            result = await agent.run(request, deps=ctx.deps, metadata=labels)
        except RunError as error:
            raise ToolFailed(f"{called} could not answer: its model failed") from error
        ctx.add_usage(result.usage)
        return _answer(result, called)

    ask.__annotations__["ctx"] = RunContext[agent.deps_type]  # type: ignore[name-defined]
    return tool(
        ask,
        name=called,
        description=summary,
        effects=_effects(agent),
        timeout_seconds=timeout_seconds,
    )


def _depth(ctx: RunContext[Any]) -> int:
    above = ctx.metadata.get(DEPTH_LABEL, "0")
    return int(above) + 1 if above.isascii() and above.isdigit() and len(above) < 4 else 1


def _effects(agent: Delegate) -> Iterable[EffectName]:
    """What running it does: no more than reading where none of its tools does more."""
    reads = (one.definition.signature.effects.is_read_only for one in agent.library)
    return ("reads",) if all(reads) else ()


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
