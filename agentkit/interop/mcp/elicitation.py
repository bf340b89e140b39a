"""``Elicitation``: a question that a server asks the user while one of its tools runs."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.agent.types import Approval, Decision
from agentkit.errors import UsageError
from agentkit.interop.mcp.listing import McpLimits, json_length
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.error_messages import problems_of
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.patterns import invisible, without_gaps
from agentkit.tools.schema_validator import UncheckableError, schema_errors

if TYPE_CHECKING:
    from mcp.types import ElicitRequestParams, ElicitResult

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Elicitation:
    """A question of a server. Its words are those of the server: show who asks.

    Attributes:
        server: Our name for the server.
        message: What it asks, with invisible characters and long runs of blanks written out, and
            the host of a ``url`` as DNS has it, where that has other letters than ours.
        schema: The fields that it wants, as a JSON Schema of one flat object, with the same written
            out, so that nobody answers a field of such a name; empty with a ``url``.
        url: A page that the user is to visit; None for a form.
    """

    server: str
    message: str
    schema: JsonObject = field(default_factory=dict)
    url: str | None = None


ElicitationAnswer: TypeAlias = Decision | Mapping[str, Any] | None
"""The values of the form; or True, or an ``Approval``, to agree without any; or False or an
``Approval`` to decline; or None when nobody answered."""

Elicitor: TypeAlias = Callable[[Elicitation], ElicitationAnswer | Awaitable[ElicitationAnswer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ElicitationHandler:
    """Puts a server's questions to the user's function, as the callback of the official client.

    Attributes:
        server: Our name for the server.
        elicit: Answers; sync or async.
        limits: How long a question may be.
        loop: Where an async function runs; None for the connection's own loop.
    """

    server: str
    elicit: Elicitor
    limits: McpLimits
    loop: asyncio.AbstractEventLoop | None = None
    _turn: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        """The answer in the protocol's words; a handler that fails answers nothing."""
        del context
        from mcp.types import ElicitResult

        asked = Elicitation(
            server=self.server,
            message=params.message,
            schema=dict(getattr(params, "requested_schema", None) or {}),
            url=getattr(params, "url", None),
        )
        try:
            async with self._turn:  # one question at a time
                return ElicitResult.model_validate(await self._result(asked))
        except Exception as error:  # noqa: BLE001 - logged
            message = "MCP server %r: its question could not be answered"
            episodes.log_failure(_logger, error, message, self.server)
            return ElicitResult(action="cancel")

    async def _result(self, asked: Elicitation) -> dict[str, Any]:
        if why := self._unasked(asked):
            return self._declined(why)
        answer = await self._answer(_as_shown(asked))
        if answer is None:
            return {"action": "cancel"}
        approves = answer.approved if isinstance(answer, Approval) else answer
        if approves is False:
            return {"action": "decline"}
        fields = asked.schema.get("properties") or {}
        content = dict(answer) if isinstance(answer, Mapping) and asked.url is None else None
        if approves is not True and (content is None or content.keys() - fields.keys()):
            return self._declined(
                f"{type(answer).__name__} is no answer; give the values of the form's own fields, "
                "True, False, an Approval or None"
            )
        if asked.url is not None:
            return {"action": "accept"}
        values = content or {}
        if why := await run_in_daemon_thread(lambda: _problem(values, asked.schema)):
            raise UsageError(f"the answer does not fit the form: {why}")
        return {"action": "accept", "content": values}

    def _unasked(self, asked: Elicitation) -> str:
        """Why the user is not asked; empty when the question may be put."""
        most, url = self.limits.max_text_chars, asked.url
        if len(asked.message) + len(url or "") + json_length(asked.schema, most) > most:
            return f"its question is longer than {most}"
        is_odd = url is not None and not _is_visited(url)
        return "its question leads to no plain https: address" if is_odd else ""

    def _declined(self, why: str) -> dict[str, Any]:
        _logger.warning("MCP server %r: declined: %s", self.server, why)
        return {"action": "decline"}

    async def _answer(self, asked: Elicitation) -> ElicitationAnswer:
        answer: Any
        if not _is_async(self.elicit):
            answer = await run_in_daemon_thread(lambda: self.elicit(asked))
        elif self.loop is None:
            answer = self.elicit(asked)
        else:
            coroutine = _awaited(self.elicit, asked)
            answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop))
        found: ElicitationAnswer = await answer if inspect.isawaitable(answer) else answer
        return found


def _is_async(function: Elicitor) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - an object with an async method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


async def _awaited(elicit: Elicitor, asked: Elicitation) -> ElicitationAnswer:
    answer: Any = elicit(asked)
    found: ElicitationAnswer = await answer
    return found


def _as_shown(asked: Elicitation) -> Elicitation:
    """The question in words that hide nothing."""
    message, url = without_gaps(asked.message), asked.url or ""
    if not (urlsplit(url).hostname or "").isascii():
        message = f"{message}\n⟨the host of the address is {_host(url)}⟩"
    return replace(asked, message=message, schema=_written_out(asked.schema))


def _written_out(value: Any) -> Any:
    match value:
        case str():
            return without_gaps(value)
        case Mapping():
            return {without_gaps(name): _written_out(one) for name, one in value.items()}
        case list():
            return [*map(_written_out, value)]
    return value


def _host(url: str) -> str:
    """The host of an address as DNS has it; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").encode("idna").decode()
    except ValueError:
        return ""


def _is_visited(url: str) -> bool:
    """Whether a user may be sent to an address; of this machine without TLS, too."""
    host = _host(url)
    if not host or invisible(url) or any(map(str.isspace, url)):
        return False
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and host in {"localhost", "127.0.0.1", "::1"}
    return "@" not in parts.netloc and (parts.scheme == "https" or is_local)


def _problem(content: Mapping[str, Any], schema: JsonObject) -> str:
    """Why values do not fit what was asked; empty when they do."""
    if not is_json(content):
        return "it is not JSON data"
    try:
        errors = schema_errors(content, schema, limit=1)
    except UncheckableError as error:
        return f"the form cannot be checked: {error}"
    problems = problems_of(errors, owner="a field", noun="field", whole="answer")
    return next((problem.rule for problem in problems), "")
