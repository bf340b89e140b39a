"""What a tool raised, as the failure that the model reads.

The text of an exception was written for developers and may hold anything: an address with a
password, a query, a path. So a model reads only what was meant for whoever calls the tool:

* the words of ``ModelRetry`` and ``ToolFailed``, as they are;
* the text of ``REFUSALS``, with which Python code says that it was given a wrong value, without
  what looks like a secret;
* of any other exception its class alone. Its text is in the log, under the id of the call.

``show_exceptions`` shows every text, for development. Clients of
``agentkit.interop.mcp.LibraryServer`` read of any exception its class alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from agentkit.agent.contracts import composite_failure
from agentkit.episodes import redaction  # a door: it loads when a tool raises
from agentkit.errors import CompositeRunError, McpError, ModelRetry, ToolFailed
from agentkit.messages import ToolCall, ToolFailure
from agentkit.tools.invocation import UnserialisableError, described, shortened

_LOG = logging.getLogger(__name__)
_LONGEST = 500
_LONGEST_READ = 4 * _LONGEST

REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, McpError)
"""Exceptions that speak of a value, so that a model can give another one; and our own words about
a server that hung up."""


def failure_of(
    error: BaseException,
    call: ToolCall,
    *,
    late_seconds: float | None = None,
    show_exceptions: bool = False,
) -> ToolFailure:
    """The failure for an exception of a tool.

    Args:
        error: What the tool raised. A signal to the model (``ModelRetry``, ``ToolFailed``) keeps
            its author's words.
        call: The call, for the log.
        late_seconds: The time that was allowed, when it is over.
        show_exceptions: Whether the texts of all exceptions are shown.
    """
    if isinstance(error, ModelRetry):
        return ToolFailure(kind="retry_requested", rule=error.message)
    if isinstance(error, ToolFailed):
        return ToolFailure(kind="tool_failed", rule=error.message, retryable=False)
    if isinstance(error, UnserialisableError):
        rule = _without_secrets(str(error))
        return ToolFailure(kind="unserialisable_result", rule=rule, retryable=False)
    if late_seconds is not None:
        return ToolFailure(kind="timeout", rule=f"It was stopped after {late_seconds:g} seconds.")
    if isinstance(error, CompositeRunError):
        failure = composite_failure(error)
        return failure if show_exceptions else _without_child_text(failure, error, call)
    rule = described(error)[:_LONGEST] if show_exceptions else _for_model(error, call)
    return ToolFailure(kind="tool_error", rule=rule, cause=type(error).__name__)


def _for_model(error: BaseException, call: ToolCall) -> str:
    """As much of an exception as a model may read; the log has the rest."""
    is_of_system = isinstance(error, OSError) and not isinstance(error, McpError)
    if isinstance(error, REFUSALS) and not is_of_system:  # some are both
        return _without_secrets(described(error))[:_LONGEST]
    _LOG.error("call %s of %s raised %s", call.call_id, call.name, described(error), exc_info=error)
    return f"{type(error).__name__}. What it says is in the log."


def _without_secrets(text: str) -> str:
    """A text without secrets and control characters; of a long one the beginning, up to a word."""
    if len(text) > _LONGEST_READ:
        head = text[:_LONGEST_READ]
        text = head.rpartition(" ")[0] or head
    plain = "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)
    return redaction.Redaction(patterns={"secret"}).text(plain)


def _without_child_text(
    failure: ToolFailure, error: CompositeRunError, call: ToolCall
) -> ToolFailure:
    """The failure of a composite, which quotes what a child raised."""
    rule, cause = failure.rule, error.__cause__
    if error.code == "child_failed" and cause is not None:
        rule = rule.replace(shortened(described(cause)), _for_model(cause, call).rstrip("."))
    return replace(failure, rule=_without_secrets(rule))
