"""Asking the person at the client whether a call may run (the protocol's elicitation).

Clients that handshake are asked while the call waits. Those of 2026-07-28 and later get the
question as the answer, and send the call again with what the person said. The question's key holds
a digest of the call, so that what was said about one call is not taken for another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentkit.agent.types import Approval
from agentkit.tools.canonical import digest

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, InputRequiredResult

_LONGEST = 2_000
_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}
DECLINED = "The person at the client did not approve it."
NOBODY = (
    "It needs the approval of a person, and this client can not ask one (it has no elicitation). "
    "Nothing was run."
)


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client says that it can put a form before its person."""
    capabilities = context.session.client_capabilities
    asked = None if capabilities is None else capabilities.elicitation
    if asked is None:
        return False
    return asked.form is not None or asked.url is None  # before 2025-11-25 it was an empty object


def question_key(name: str, arguments: Mapping[str, Any]) -> str:
    """The key of the question about one call."""
    return f"approve-{digest({'name': name, 'arguments': dict(arguments)})[:32]}"


def question(name: str, arguments: Mapping[str, Any]) -> str:
    """What the person reads."""
    shown = json.dumps(dict(arguments), ensure_ascii=False, indent=1)
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}… ({len(shown)} characters)"
    return f"Run {name} with these arguments?\n{cut}"


async def ask_client(
    context: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
    name: str,
    arguments: Mapping[str, Any],
) -> Approval | InputRequiredResult:
    """What the person says, or the question when it is to be sent as the answer.

    Args:
        context: The request, from a client that can ask.
        params: Its parameters, which may hold the reply.
        name: The tool as the client calls it.
        arguments: What it is to be called with.
    """
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    message, schema = question(name, arguments), dict(_SCHEMA)
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        replied = await context.session.elicit_form(message, schema, context.request_id)
        return _decision(replied.action)
    key = question_key(name, arguments)
    reply = (params.input_responses or {}).get(key)
    if reply is not None:
        return _decision(getattr(reply, "action", "decline"))
    asked = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
    return InputRequiredResult(input_requests={key: asked})


def _decision(action: str) -> Approval:
    agreed = action == "accept"
    return Approval(approved=agreed, reason="" if agreed else DECLINED)
