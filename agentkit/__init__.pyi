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
from .agent.types import (
    Limits as Limits,
    RunResult as RunResult,
    ToolPolicy as ToolPolicy,
)
from .composites.decorator import composite as composite
from .episodes.episode import Episode as Episode
from .errors import (
    AgentKitError as AgentKitError,
    ModelRetry as ModelRetry,
    ToolFailed as ToolFailed,
)
from .library.library import Library as Library
from .library.opening import open_store as open_store
from .media import Audio as Audio, File as File, Image as Image
from .models.base import resolve_model as resolve_model
from .tools.decorator import tool as tool
from .tools.definition import (
    Effects as Effects,
    ToolDefinition as ToolDefinition,
)
from .tools.invocation import RunContext as RunContext
from .tools.tool import Tool as Tool
