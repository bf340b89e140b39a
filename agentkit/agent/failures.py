"""What a tool raised, as the failure that the model reads."""

from __future__ import annotations

from agentkit.agent.contracts import composite_failure
from agentkit.errors import CompositeRunError, ModelRetry, ToolFailed
from agentkit.messages import ToolFailure
from agentkit.tools.encoding import UnserialisableError


def failure_of(error: BaseException, *, late_seconds: float | None = None) -> ToolFailure:
    """The failure for an exception of a tool.

    Args:
        error: What the tool raised. A signal to the model (``ModelRetry``, ``ToolFailed``) keeps
            its author's words.
        late_seconds: The time that was allowed, when it is over.
    """
    if isinstance(error, ModelRetry):
        return ToolFailure(kind="retry_requested", rule=error.message)
    if isinstance(error, ToolFailed):
        return ToolFailure(kind="tool_failed", rule=error.message, retryable=False)
    if isinstance(error, UnserialisableError):
        return ToolFailure(kind="unserialisable_result", rule=str(error), retryable=False)
    if late_seconds is not None:
        return ToolFailure(kind="timeout", rule=f"It was stopped after {late_seconds:g} seconds.")
    if isinstance(error, CompositeRunError):
        return composite_failure(error)
    name = type(error).__name__
    return ToolFailure(kind="tool_error", rule=f"{name}: {str(error)[:500]}", cause=name)
