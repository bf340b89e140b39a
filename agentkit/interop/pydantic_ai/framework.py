"""pydantic-ai itself, and our results as its values and signals."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from agentkit.errors import MissingExtraError
from agentkit.messages import ToolResult


def require() -> Any:
    """The framework's package; an error that says what to install where it is not there."""
    try:
        import pydantic_ai
        import pydantic_ai.capabilities
        import pydantic_ai.toolsets.abstract
    except ImportError as error:
        raise MissingExtraError(
            "the adapter for pydantic-ai",
            package="pydantic_ai",
            install='pip install "pydantic-ai-slim[openai]"',
        ) from error
    framework: ModuleType = pydantic_ai
    return framework


def value_of(framework: Any, result: ToolResult, *, needs_approval: bool) -> Any:
    """A result as the framework wants it: a value, or one of its signals."""
    if result.status == "ok":
        return result.text
    if result.status == "deferred":
        signals = framework.exceptions
        raise signals.ApprovalRequired if needs_approval else signals.CallDeferred
    raise framework.exceptions.ToolFailed(result.text)
