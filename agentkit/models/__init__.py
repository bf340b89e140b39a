"""The seam to language models: the protocol, its records, the adapters.

``base`` holds the protocol. ``openai_compatible`` speaks chat completions over ``transport`` in the
words of ``wire``; ``hosted`` wraps SDKs; ``prompted`` gives tools to models that know none. A name
loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.models.base import (
        ChatModel,
        DeferringChatModel,
        FinishReason,
        ModelEvent,
        ModelRequest,
        ModelResponse,
        ModelSettings,
        StreamingChatModel,
        TextDelta,
        ToolChoice,
    )
    from agentkit.models.openai_compatible import OpenAICompatibleModel, Price
    from agentkit.models.prompt_format import render_calls
    from agentkit.models.prompted import PromptedModel
    from agentkit.models.resolve import resolve_model
    from agentkit.models.retries import RetryPolicy

__all__ = [
    "ChatModel",
    "DeferringChatModel",
    "FinishReason",
    "ModelEvent",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "OpenAICompatibleModel",
    "Price",
    "PromptedModel",
    "RetryPolicy",
    "StreamingChatModel",
    "TextDelta",
    "ToolChoice",
    "render_calls",
    "resolve_model",
]

_BASE = "agentkit.models.base"
_MODULES = {
    "ChatModel": _BASE,
    "DeferringChatModel": _BASE,
    "FinishReason": _BASE,
    "ModelEvent": _BASE,
    "ModelRequest": _BASE,
    "ModelResponse": _BASE,
    "ModelSettings": _BASE,
    "OpenAICompatibleModel": "agentkit.models.openai_compatible",
    "Price": "agentkit.models.openai_compatible",
    "PromptedModel": "agentkit.models.prompted",
    "RetryPolicy": "agentkit.models.retries",
    "StreamingChatModel": _BASE,
    "TextDelta": _BASE,
    "ToolChoice": _BASE,
    "render_calls": "agentkit.models.prompt_format",
    "resolve_model": "agentkit.models.resolve",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
