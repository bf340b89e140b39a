"""The spans of a run, and what each of them tells: names, numbers, ids, kinds.

No text, argument, result, instruction or message of an exception is read here, except for
``content``, which is asked only where a ``ContentPolicy`` wants it. A name of a tool that the
library does not have was written by the model, so it is not a name but text.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Literal, TypeAlias

from agentkit.diagnosis.labels import label_of_failure
from agentkit.episodes import Episode
from agentkit.errors import AgentKitError
from agentkit.library import dag
from agentkit.library.library import Library
from agentkit.messages import Message, ToolCall, ToolResult, Usage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.retrieval.retriever import Retrieval
from agentkit.tools.tool import Tool
from agentkit.tracing import content
from agentkit.tracing.tracing import Fact, Span, Tracing, error_type

Facts: TypeAlias = "dict[str, Fact]"
GuardrailName = Literal["validation", "contract", "postcondition", "approval"]

UNKNOWN_TOOL = "unknown_tool"
"""The name of every tool that is not in the library."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
_LONGEST_DESCRIPTION = 1024


def run_span(
    tracing: Tracing,
    *,
    agent: str,
    model: ChatModel,
    library: Library,
    episode_id: str,
    request: str,
    history: tuple[Message, ...],
    instructions: str,
    conversation_id: str | None,
    resumes: str | None,
    wants_json: bool,
    began_ns: int,
) -> Span:
    """One run of an agent; it is given the episode."""
    facts: Facts = {
        "gen_ai.provider.name": provider_of(model),
        "gen_ai.request.model": model.name,
        "gen_ai.agent.name": agent,
        "agentkit.episode.id": episode_id,
        "agentkit.library.version": library.version,
        "agentkit.library.size": len(library),
        **_known({"gen_ai.conversation.id": conversation_id, "agentkit.episode.resumes": resumes}),
        **({"gen_ai.output.type": "json"} if wants_json else {}),
    }
    return tracing.span(
        "invoke_agent",
        agent,
        facts,
        outcome=lambda value: _of_episode(value) if isinstance(value, Episode) else {},
        content=partial(content.of_run, request, history, instructions),
        began_ns=began_ns,
    )


def chat_span(
    tracing: Tracing,
    model: ChatModel,
    request: ModelRequest,
    *,
    conversation_id: str | None = None,
    refinement: int = 0,
    streams: bool = False,
) -> Span:
    """One request to a model, with all its retries; it is given the response."""
    settings = request.settings
    facts = _known(
        {
            "gen_ai.provider.name": provider_of(model),
            "gen_ai.request.model": model.name,
            "gen_ai.conversation.id": conversation_id,
            "agentkit.refine.round": refinement or None,
            "gen_ai.request.stream": streams or None,
            "gen_ai.request.temperature": settings.temperature,
            "gen_ai.request.top_p": settings.top_p,
            "gen_ai.request.max_tokens": settings.max_tokens,
            "gen_ai.request.seed": settings.seed,
            "gen_ai.output.type": None if request.output_schema is None else "json",
        }
    )
    return tracing.span(
        "chat",
        model.name,
        facts,
        outcome=lambda value: _of_response(value) if isinstance(value, ModelResponse) else {},
        content=partial(content.of_chat, request),
        is_remote=True,
    )


def tool_span(tracing: Tracing, call: ToolCall, tool: Tool | None, library: Library) -> Span:
    """One call of a tool, with its checks and all its attempts; it is given the result."""
    name = UNKNOWN_TOOL if tool is None else tool.name
    return tracing.span(
        "execute_tool",
        name,
        _of_tool(call, tool, library),
        outcome=lambda value: _of_result(call, value) if isinstance(value, ToolResult) else {},
        content=partial(content.of_call, call),
    )


def retrieval_span(tracing: Tracing, query: str, library: Library) -> Span:
    """One search for tools; it is given what was found."""
    return tracing.span(
        "retrieval",
        "",
        {"agentkit.library.version": library.version, "agentkit.library.size": len(library)},
        outcome=lambda value: _of_retrieval(value) if isinstance(value, Retrieval) else {},
        content=partial(content.of_retrieval, query),
    )


def guardrail_span(tracing: Tracing, name: GuardrailName, tool: str) -> Span:
    """One check of a call; it is given why the call may not go on, empty where it may."""
    return tracing.span(
        "run_guardrail",
        name,
        {"agentkit.guardrail.name": name, "gen_ai.tool.name": tool},
        outcome=lambda cause: {
            "agentkit.guardrail.allowed": not cause,
            **({"agentkit.guardrail.cause": str(cause)} if cause else {}),
        },
    )


def provider_of(model: ChatModel) -> str:
    """The provider of a model: its ``provider_name`` if it has one, else the name of its class."""
    known = getattr(model, "provider_name", None)
    if isinstance(known, str) and known:
        return known
    kind = type(model).__name__
    return kind.removesuffix("Model").lower() or kind.lower()


def _known(facts: dict[str, Fact | None]) -> Facts:
    return {name: value for name, value in facts.items() if value is not None}


def _of_tool(call: ToolCall, tool: Tool | None, library: Library) -> Facts:
    if tool is None:
        return {"gen_ai.tool.name": UNKNOWN_TOOL, "gen_ai.tool.call.id": call.call_id}
    definition = tool.definition
    facts: Facts = {
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": definition.description.summary[:_LONGEST_DESCRIPTION],
        "agentkit.tool.version": definition.digest[:12],
        "agentkit.tool.digest": definition.digest,
        "agentkit.library.version": library.version,
    }
    if not definition.is_composite:
        return {**facts, "agentkit.tool.depth": 0, "agentkit.tool.flat": 1}
    if tool.name in library:
        try:
            facts["agentkit.tool.depth"] = dag.depth(library, tool.name)
            facts["agentkit.tool.flat"] = dag.flat_size(library, tool.name)
        except AgentKitError as broken:  # a composite whose children are gone has neither
            facts["agentkit.failure.kind"] = error_type(broken)
    return facts


def _of_episode(episode: Episode) -> Facts:
    facts: Facts = {
        "agentkit.episode.stop_reason": episode.stop_reason,
        "agentkit.episode.turns": len(episode.turns),
        "agentkit.usage.requests": episode.usage.requests,
    }
    if episode.turns and episode.turns[-1].finish_reason is not None:
        facts["gen_ai.response.finish_reasons"] = (episode.turns[-1].finish_reason,)
    return facts | _of_usage(episode.usage)


def _of_response(response: ModelResponse) -> Facts:
    facts: Facts = {}
    if response.model:
        facts["gen_ai.response.model"] = response.model
    if response.finish_reason != "unknown":
        facts["gen_ai.response.finish_reasons"] = (response.finish_reason,)
    return facts | _of_usage(response.usage)


def _of_usage(usage: Usage) -> Facts:
    facts: Facts = {}
    if usage.total_tokens:
        facts["gen_ai.usage.input_tokens"] = usage.prompt_tokens
        facts["gen_ai.usage.output_tokens"] = usage.completion_tokens
    if usage.cached_tokens:
        facts["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.cost_usd is not None:
        facts["agentkit.usage.cost_usd"] = usage.cost_usd
    return facts


def _of_retrieval(found: Retrieval) -> Facts:
    return {
        "agentkit.retrieval.shortlist.size": len(found.hits),
        "agentkit.retrieval.offered.size": len(found.offered),
        **_of_usage(found.usage),
    }


def _of_result(call: ToolCall, result: ToolResult) -> Facts:
    facts: Facts = {
        "agentkit.tool.status": result.status,
        "agentkit.tool.attempts": result.attempts,
    }
    failure = result.failure
    if failure is None:
        return facts
    cause = failure.cause or ""
    is_raised = failure.kind == "tool_error" and _WORD.fullmatch(cause)
    facts["agentkit.failure.kind"] = failure.kind
    facts["error.type"] = cause if is_raised else failure.kind
    return facts | _known({"agentkit.failure.label": label_of_failure(failure, call.arguments)})
