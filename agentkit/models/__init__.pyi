from .base import (
    ChatModel as ChatModel,
)
from .base import (
    DeferringChatModel as DeferringChatModel,
)
from .base import (
    FinishReason as FinishReason,
)
from .base import (
    ModelEvent as ModelEvent,
)
from .base import (
    ModelRequest as ModelRequest,
)
from .base import (
    ModelResponse as ModelResponse,
)
from .base import (
    ModelSettings as ModelSettings,
)
from .base import (
    StreamingChatModel as StreamingChatModel,
)
from .base import (
    TextDelta as TextDelta,
)
from .base import (
    ToolChoice as ToolChoice,
)
from .openai_compatible import (
    OpenAICompatibleModel as OpenAICompatibleModel,
)
from .openai_compatible import (
    Price as Price,
)
from .prompt_format import render_calls as render_calls
from .prompted import PromptedModel as PromptedModel
from .resolve import resolve_model as resolve_model
from .retries import RetryPolicy as RetryPolicy
