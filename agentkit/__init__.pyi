from ._version import __version__ as __version__
from .agent.agent import Agent as Agent
from .agent.guardrails import (
    Ask as Ask,
    Block as Block,
    Rewrite as Rewrite,
    guardrail as guardrail,
)
from .agent.history import (
    CapToolResults as CapToolResults,
    KeepLastTurns as KeepLastTurns,
    Summarize as Summarize,
    TokenBudget as TokenBudget,
)
from .agent.session import pending_approvals as pending_approvals
from .agent.types import (
    Approval as Approval,
    Instructions as Instructions,
    Limits as Limits,
    RunFinished as RunFinished,
    RunResult as RunResult,
    ToolCallFinished as ToolCallFinished,
    ToolPolicy as ToolPolicy,
)
from .composites.decorator import composite as composite
from .episodes.episode import Episode as Episode
from .errors import (
    AgentKitError as AgentKitError,
    ModelRetry as ModelRetry,
    ToolFailed as ToolFailed,
)
from .interop.mcp.client import McpServer as McpServer
from .library.library import Library as Library
from .library.opening import open_store as open_store
from .media import Audio as Audio, File as File, Image as Image
from .messages import ToolCall as ToolCall
from .models.base import (
    ChatModel as ChatModel,
    ModelRequest as ModelRequest,
    TextDelta as TextDelta,
    resolve_model as resolve_model,
)
from .models.fallback import FallbackModel as FallbackModel
from .models.prices import Price as Price
from .server.app import create_app as create_app
from .server.keys import Keys as Keys
from .server.limits import ServerLimits as ServerLimits
from .server.running import serve as serve, serving as serving
from .testing.scripted_models import (
    FunctionModel as FunctionModel,
    ScriptedModel as ScriptedModel,
)
from .tools.decorator import tool as tool
from .tools.definition import (
    Effects as Effects,
    ToolDefinition as ToolDefinition,
)
from .tools.invocation import RunContext as RunContext
from .tools.tool import Tool as Tool
