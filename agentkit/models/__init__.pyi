from .base import (
    ChatModel as ChatModel,
    DeferringChatModel as DeferringChatModel,
    FinishReason as FinishReason,
    ModelEvent as ModelEvent,
    ModelRequest as ModelRequest,
    ModelResponse as ModelResponse,
    ModelSettings as ModelSettings,
    StreamingChatModel as StreamingChatModel,
    TextDelta as TextDelta,
    ToolChoice as ToolChoice,
)
from .openai_compatible import (
    OpenAICompatibleModel as OpenAICompatibleModel,
    Price as Price,
)
from .prompt_format import render_calls as render_calls
from .prompted import PromptedModel as PromptedModel
from .resolve import resolve_model as resolve_model
from .retries import RetryPolicy as RetryPolicy
