"""openai-agents itself."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from agentkit.errors import MissingExtraError


def require() -> Any:
    """The framework's package; an error that says what to install where it is not there."""
    try:
        import agents
    except ImportError as error:
        raise MissingExtraError(
            "the adapter for openai-agents",
            package="agents",
            install="pip install openai-agents",
        ) from error
    framework: ModuleType = agents
    return framework
