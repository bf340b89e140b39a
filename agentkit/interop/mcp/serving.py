"""What ``LibraryServer`` shows and does: tools for a client, one call, and its answer.

Persons at clients are asked for approval by the protocol's elicitation. Clients that handshake are
asked while the call waits. Those of 2026-07-28 and later get the question as the answer, and send
the call again with what the person said. The question's key holds a digest of the call, so that
what was said about one call is not taken for another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import Approval, Approver
from agentkit.diagnosis.wording import describe_failure
from agentkit.episodes import Episode, Turn
from agentkit.episodes.labels import OVER_MCP, SOURCE
from agentkit.library.library import Library, broken_links
from agentkit.media import Media
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invocation import RunFacts
from agentkit.tools.patterns import without_gaps
from agentkit.tools.sources.json_records import RESULT_FIELD, describes_object, tool_record
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, InputRequiredResult

_logger = logging.getLogger(__name__)

NOBODY = (
    "It needs the approval of a person, and this client cannot ask one (it has no elicitation). "
    "Nothing was run."
)
_DECLINED = "The person at the client did not approve it."
_SAME_YES: tuple[dict[str, Any], ...] = ({}, {"approve": True}, {"approved": True})
_LONGEST_HELD = 65_536
"""Characters of a request that is kept while a person is asked."""
_ANSWER_SECONDS = 600.0
_LONGEST_QUESTION = 2_000
UNSHOWN = (
    "It needs the approval of a person, who can be shown 2,000 characters of the arguments, and "
    "they have {long:,}. Nothing was run; call it with shorter ones."
)


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The view clients have of one snapshot.

    Attributes:
        library: The snapshot, linked to its code.
        asks_host: Whether a function of this process decides about tools that need approval, and
            not the person at a client that can ask.
    """

    library: Library
    asks_host: bool = False
    _records: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def runnable(self) -> Mapping[str, Tool]:
        """The tools with code, by name."""
        return {tool.name: tool for tool in self.library if tool.is_bound}

    @cached_property
    def open(self) -> Mapping[str, Tool]:
        """The runnable tools that need no approval in a client."""
        if self.asks_host:
            return self.runnable
        return {name: tool for name, tool in self.runnable.items() if not tool.needs_approval}

    @cached_property
    def hidden(self) -> Mapping[str, str]:
        """Why a tool cannot run here, in a sentence, by its name."""
        return {tool.name: self._why(tool) for tool in self.library if not tool.is_bound}

    def _why(self, tool: Tool) -> str:
        if tool.definition.is_composite:
            reasons = (problem.message for problem in broken_links(self.library, tool.name))
            return " ".join(reasons) or "it has no code in this process"
        return f"it has no code in this process; name the module that defines {tool.name!r}"

    def record(self, name: str) -> dict[str, Any]:
        """A visible tool as an entry of ``tools/list``; worked out once a snapshot."""
        if name not in self._records:
            self._records[name] = tool_record(self.runnable[name].definition, name=name)
        return self._records[name]


@dataclass(kw_only=True)
class CallRunner:
    """Runs calls as an agent would: arguments checked, contracts kept, failures as values.

    Attributes:
        queue: Takes episodes to their store.
        execution: How calls are run; who is asked for approval is said with each call.
    """

    queue: EpisodeQueue
    execution: Execution
    _running: int = field(init=False, default=0)
    _quiet: asyncio.Event | None = field(init=False, default=None)

    async def idle(self, seconds: float) -> None:
        """Wait until no call runs, at most so long."""
        self._quiet = asyncio.Event()
        if self._running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), seconds)

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        library: Library,
        approve: Approver | None,
        client: str,
        user: str,
        deps: object = None,
    ) -> ToolResult:
        """Run one call and keep it as an episode, whatever came of it.

        Args:
            name: What the library calls the tool.
            arguments: What the client sent.
            library: The snapshot that the call is pinned to.
            approve: Decides about a tool that needs approval.
            client: Who called, as it names itself.
            user: Who called, as this server knows it; calls of one user are one witness.
            deps: What tools find in their ``RunContext``.
        """
        call = ToolCall(call_id=new_episode_id(), name=name, arguments=dict(arguments))
        episode = Episode(
            episode_id=call.call_id,
            request="",
            stop_reason="cancelled",
            model=f"mcp:{client}",
            library_version=library.version,
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            error="CancelledError: the client cancelled the call",
            metadata={SOURCE: OVER_MCP, "client": client, "user": user},
        )
        clock = time.perf_counter()
        facts = RunFacts(
            deps=deps,
            run_id=episode.episode_id,
            metadata=episode.metadata,
            library_version=library.version,
        )
        tools = SelectedTools.whole(library)
        executor = Executor(shared=self.execution, tools=tools, run=facts)
        executor.approve = approve
        self._running += 1
        try:
            (result,) = await executor.execute((call,))
        except asyncio.CancelledError:
            await self.queue.put(_ended(episode, call, time.perf_counter() - clock))
            raise
        finally:
            facts.is_over = True
            self._running -= 1
            if self._quiet is not None and not self._running:
                self._quiet.set()
        ended = _ended(episode, call, time.perf_counter() - clock, result)
        unkept = await self.queue.put(
            replace(ended, stop_reason="finished", error=None, output=result.text)
        )
        if unkept is not None:
            raise unkept
        return result


def _ended(episode: Episode, call: ToolCall, seconds: float, *results: ToolResult) -> Episode:
    message = AssistantMessage(tool_calls=(call,))
    turn = Turn(message=message, results=results, seconds=seconds)
    return replace(episode, turns=(turn,), seconds=seconds)


def for_client(result: ToolResult) -> ToolResult:
    """A result as somebody outside may read it: of an exception only its class.

    The model of an agent reads what a tool says about its arguments (``agentkit.agent.checks``);
    a client is somebody else's. What it does not read is in the log and in the episode, under
    the id that it is given.
    """
    failure = result.failure
    if failure is None or failure.kind not in {"tool_error", "unserialisable_result"}:
        return result
    rule = episodes.log_text(failure.rule)
    _logger.warning("incident %s: %s: %s", result.call_id, result.name, rule)
    what = f"{failure.cause}; incident" if failure.cause else "Incident"
    hidden = replace(failure, rule=f"{what} {result.call_id} in the server's log")
    return replace(result, text=describe_failure(result.name, hidden), failure=hidden)


def call_record(result: ToolResult, definition: ToolDefinition) -> dict[str, Any]:
    """A result as the protocol has it.

    A failed, refused or waiting call is an answer with ``isError`` whose text says what a model
    can do about it; it is not an error of the protocol.
    """
    is_ok, schema = result.status == "ok", definition.signature.result
    record = text_record(result.text or ("" if is_ok else result.status), is_error=not is_ok)
    record["content"] += map(_block, result.media)
    if is_ok and schema is not None:
        value = result.value
        record["structuredContent"] = value if describes_object(schema) else {RESULT_FIELD: value}
    return record


def _block(medium: Media) -> dict[str, Any]:
    """A medium as the protocol has it."""
    if medium.data is None:
        return {"type": "resource_link", "uri": medium.url, "name": medium.name or medium.kind}
    if medium.kind != "file":
        return {"type": medium.kind, "data": medium.base64, "mimeType": medium.media_type}
    uri = f"agentkit:{medium.sha256}/{quote(medium.name)}"
    held = {"uri": uri, "mimeType": medium.media_type, "blob": medium.base64}
    return {"type": "resource", "resource": held}


def text_record(text: str, *, is_error: bool = True) -> dict[str, Any]:
    """An answer that is a text, such as why there was no call."""
    content = [{"type": "text", "text": text}]
    return {"content": content, "isError": is_error, "resultType": "complete"}


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client says that it can put a form before its person."""
    capabilities = context.session.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    # Before 2025-11-25 it was an empty object.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask_client(
    context: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
    name: str,
    arguments: Mapping[str, Any],
) -> Approval | InputRequiredResult:
    """The person's answer, or the question when it is to be sent instead.

    Args:
        context: The request.
        params: Its parameters, which may hold the reply.
        name: The tool as the client calls it.
        arguments: What it is to be called with.
    """
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    if not can_ask(context):
        return Approval(approved=False, reason=NOBODY)
    values = dict(arguments)
    text = json.dumps(values, ensure_ascii=False, indent=1)
    shown = without_gaps(text)
    long = max(len(text), len(shown))
    if long > _LONGEST_QUESTION:  # nobody agrees to what nobody sees
        return Approval(approved=False, reason=UNSHOWN.format(long=long))
    message = f"Run {name} with these arguments?\n{shown}"
    schema = {"type": "object", "properties": {}}
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return await _asked_meanwhile(context, params, message, schema)
    key = f"approve-{digest({'name': name, 'arguments': values})[:32]}"
    reply = (params.input_responses or {}).get(key)
    if reply is not None:
        return _decision(reply)
    request = ElicitRequest(
        params=ElicitRequestFormParams(message=message, requested_schema=schema)
    )
    return InputRequiredResult(input_requests={key: request})


async def _asked_meanwhile(
    context: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
    message: str,
    schema: dict[str, Any],
) -> Approval:
    """The answer of a person who is asked while the request waits, which nobody does for ever."""
    held = len(params.model_dump_json())  # beside the arguments a request may hold anything
    if held > _LONGEST_HELD:
        return Approval(approved=False, reason=UNSHOWN.format(long=held))
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return _decision(await context.session.elicit_form(message, schema, context.request_id))
    except TimeoutError:
        return Approval(approved=False, reason=_DECLINED)


def _decision(reply: object) -> Approval:
    """A person's yes; the form has no fields, so nothing but the same yes may stand there."""
    content = getattr(reply, "content", None) or {}
    agreed = getattr(reply, "action", "") == "accept" and content in _SAME_YES
    agreed = agreed and all(v is True for v in content.values())  # 1 is equal, too
    return Approval(approved=agreed, reason="" if agreed else _DECLINED)
