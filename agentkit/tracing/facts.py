"""What may be told of an operation without telling what was said: names, numbers, ids, kinds.

No text, argument, result, instruction or message of an exception is read here. A name of a tool
that the library does not have was written by the model, so it is no name but text.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from agentkit.diagnosis.labels import label_of_failure
from agentkit.episodes import Episode
from agentkit.errors import (
    AgentKitError,
    CompositeRunError,
    ModelStatusError,
    RunError,
)
from agentkit.library import dag
from agentkit.library.library import Library
from agentkit.messages import ToolCall, ToolFailure, ToolResult, Usage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.retrieval.retriever import Retrieval
from agentkit.tools.tool import Tool
from agentkit.tracing import conventions as names
from agentkit.tracing.tracer import (
    ChatOperation,
    ChildOperation,
    GuardrailOperation,
    GuardrailVerdict,
    Operation,
    Outcome,
    RetrievalOperation,
    RunOperation,
    ToolOperation,
)

Fact: TypeAlias = "str | bool | int | float | tuple[str, ...]"
Facts: TypeAlias = "dict[str, Fact]"

UNKNOWN_TOOL = "unknown_tool"
"""The name of every tool that is not in the library."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
_PROVIDERS = {"OpenAICompatibleModel": "openai"}
LONGEST_DESCRIPTION = 1024


def provider_of(model: ChatModel) -> str:
    """The provider of a model: its ``provider_name`` if it has one, else the name of its class."""
    known = getattr(model, "provider_name", None)
    if isinstance(known, str) and known:
        return known
    kind = type(model).__name__
    return _PROVIDERS.get(kind, kind.removesuffix("Model").lower() or kind.lower())


def error_type(error: BaseException) -> str:
    """A word for an error: a status, a code, or the name of its class; never its message."""
    if isinstance(error, RunError) and error.__cause__ is not None:
        return error_type(error.__cause__)
    if isinstance(error, ModelStatusError):
        return str(error.status)
    if isinstance(error, CompositeRunError):
        failed = error.code == "child_failed" and error.__cause__ is not None
        return type(error.__cause__).__name__ if failed else error.code
    return type(error).__name__


def title(operation: Operation) -> tuple[str, str]:
    """Kind and subject of an operation, which make the name of its span."""
    match operation:
        case RunOperation(agent=agent):
            return names.INVOKE_AGENT, agent
        case ChatOperation(model=model):
            return names.CHAT, model.name
        case RetrievalOperation():
            return names.RETRIEVAL, ""
        case GuardrailOperation(name=name):
            return names.RUN_GUARDRAIL, name
        case _:
            return names.EXECUTE_TOOL, tool_name(operation.tool)


def tool_name(tool: Tool | None) -> str:
    """The name of a tool that there is."""
    return UNKNOWN_TOOL if tool is None else tool.name


def facts_before(operation: Operation) -> Facts:
    """What is known when an operation begins."""
    kind, _ = title(operation)
    facts: Facts = {names.OPERATION: kind}
    match operation:
        case RunOperation():
            facts |= _of_run(operation)
        case ChatOperation():
            facts |= _of_chat(operation)
        case ToolOperation(call=call, tool=tool, library=library):
            facts |= _of_tool(call, tool, library)
        case ChildOperation(call=call, tool=tool, library=library, level=level):
            facts |= _of_tool(call, tool, library)
            facts[names.CHILD_LEVEL] = level
        case RetrievalOperation(library=library):
            facts[names.LIBRARY_VERSION] = library.version
            facts[names.LIBRARY_SIZE] = len(library)
        case GuardrailOperation(name=name, tool=tool_called):
            facts[names.GUARDRAIL] = name
            facts[names.TOOL] = tool_called
    return facts


def _of_run(run: RunOperation) -> Facts:
    facts: Facts = {
        names.PROVIDER: provider_of(run.model),
        names.REQUEST_MODEL: run.model.name,
        names.AGENT: run.agent,
        names.EPISODE: run.episode_id,
        names.LIBRARY_VERSION: run.library.version,
        names.LIBRARY_SIZE: len(run.library),
    }
    if run.conversation_id is not None:
        facts[names.CONVERSATION] = run.conversation_id
    if run.resumes is not None:
        facts[names.RESUMES] = run.resumes
    if run.wants_json:
        facts[names.OUTPUT_TYPE] = "json"
    return facts


def _of_chat(chat: ChatOperation) -> Facts:
    facts: Facts = {
        names.PROVIDER: provider_of(chat.model),
        names.REQUEST_MODEL: chat.model.name,
    }
    if chat.conversation_id is not None:
        facts[names.CONVERSATION] = chat.conversation_id
    if chat.refinement:
        facts[names.REFINEMENT] = chat.refinement
    if chat.streams:
        facts[names.REQUEST_STREAM] = True
    return facts | _of_request(chat.request)


def _of_request(request: ModelRequest) -> Facts:
    settings = request.settings
    known = {
        names.REQUEST_TEMPERATURE: settings.temperature,
        names.REQUEST_TOP_P: settings.top_p,
        names.REQUEST_MAX_TOKENS: settings.max_tokens,
        names.REQUEST_SEED: settings.seed,
    }
    facts: Facts = {name: value for name, value in known.items() if value is not None}
    if request.output_schema is not None:
        facts[names.OUTPUT_TYPE] = "json"
    return facts


def _of_tool(call: ToolCall, tool: Tool | None, library: Library) -> Facts:
    facts: Facts = {names.TOOL: tool_name(tool), names.TOOL_CALL: call.call_id}
    if tool is None:
        return facts
    definition = tool.definition
    facts[names.TOOL_TYPE] = "function"
    facts[names.TOOL_DESCRIPTION] = definition.description.summary[:LONGEST_DESCRIPTION]
    facts[names.TOOL_VERSION] = definition.digest[:12]
    facts[names.TOOL_DIGEST] = definition.digest
    facts[names.LIBRARY_VERSION] = library.version
    if not definition.is_composite:
        return facts | {names.TOOL_DEPTH: 0, names.TOOL_FLAT: 1}
    if tool.name in library:
        try:
            facts[names.TOOL_DEPTH] = dag.depth(library, tool.name)
            facts[names.TOOL_FLAT] = dag.flat_size(library, tool.name)
        except AgentKitError as broken:  # a composite whose children are gone has neither
            facts[names.FAILURE_KIND] = error_type(broken)
    return facts


def facts_after(operation: Operation, outcome: Outcome) -> Facts:
    """What is known when it is over; ``error.type`` is there exactly when it failed."""
    facts: Facts = {}
    if outcome.error is not None:
        facts[names.ERROR] = error_type(outcome.error)
    match outcome.value:
        case Episode() as episode:
            facts |= _of_episode(episode)
        case ModelResponse() as response:
            facts |= _of_response(response)
        case ToolResult() as result:
            facts |= _of_result(operation, result)
        case Retrieval() as found:
            facts[names.SHORTLIST] = len(found.hits)
            facts[names.OFFERED] = len(found.offered)
            facts |= _of_usage(found.usage)
        case GuardrailVerdict() as verdict:
            facts[names.GUARDRAIL_ALLOWED] = verdict.allowed
            if verdict.cause:
                facts[names.GUARDRAIL_CAUSE] = verdict.cause
        case _:
            pass
    if outcome.retries:
        facts[names.RETRIES] = len(outcome.retries)
    return facts


def _of_episode(episode: Episode) -> Facts:
    facts: Facts = {
        names.STOP_REASON: episode.stop_reason,
        names.TURNS: len(episode.turns),
        names.REQUESTS: episode.usage.requests,
    }
    if episode.turns and episode.turns[-1].finish_reason is not None:
        facts[names.FINISH_REASONS] = (episode.turns[-1].finish_reason,)
    return facts | _of_usage(episode.usage)


def _of_response(response: ModelResponse) -> Facts:
    facts: Facts = {}
    if response.model:
        facts[names.RESPONSE_MODEL] = response.model
    if response.finish_reason != "unknown":
        facts[names.FINISH_REASONS] = (response.finish_reason,)
    return facts | _of_usage(response.usage)


def _of_usage(usage: Usage) -> Facts:
    facts: Facts = {}
    if usage.total_tokens:
        facts[names.INPUT_TOKENS] = usage.prompt_tokens
        facts[names.OUTPUT_TOKENS] = usage.completion_tokens
    if usage.cached_tokens:
        facts[names.CACHED_TOKENS] = usage.cached_tokens
    if usage.cost_usd is not None:
        facts[names.COST] = usage.cost_usd
    return facts


def _of_result(operation: Operation, result: ToolResult) -> Facts:
    facts: Facts = {names.TOOL_STATUS: result.status, names.TOOL_ATTEMPTS: result.attempts}
    failure = result.failure
    if failure is None:
        return facts
    facts[names.FAILURE_KIND] = failure.kind
    facts[names.ERROR] = _failure_type(failure)
    arguments = operation.call.arguments if isinstance(operation, ToolOperation) else {}
    label = label_of_failure(failure, arguments)
    if label is not None:
        facts[names.FAILURE_LABEL] = label
    return facts


def _failure_type(failure: ToolFailure) -> str:
    """The exception's name where a tool raised one, the kind of failure elsewhere."""
    cause = failure.cause or ""
    return cause if failure.kind == "tool_error" and _WORD.fullmatch(cause) else failure.kind
