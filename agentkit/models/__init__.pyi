from .anthropic import anthropic_model as anthropic_model
from .base import (
    ChatModel as ChatModel,
    FinishReason as FinishReason,
    ModelEvent as ModelEvent,
    ModelRequest as ModelRequest,
    ModelResponse as ModelResponse,
    ModelSettings as ModelSettings,
    ReasoningDelta as ReasoningDelta,
    StreamingChatModel as StreamingChatModel,
    TextDelta as TextDelta,
    ToolChoice as ToolChoice,
    accepted_media as accepted_media,
    resolve_model as resolve_model,
)
from .fallback import FallbackModel as FallbackModel
from .litellm import litellm_model as litellm_model
from .openai_compatible import (
    OpenAICompatibleModel as OpenAICompatibleModel,
    openai_model as openai_model,
)
from .prices import Price as Price, limit_price as limit_price
from .prompt_format import render_calls as render_calls
from .prompted import PromptedModel as PromptedModel
from .responses import openai_responses_model as openai_responses_model
from .retries import RetryPolicy as RetryPolicy
