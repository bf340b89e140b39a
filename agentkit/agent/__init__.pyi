from .code_mode import (
    program_tool as program_tool,
    signature as signature,
)
from .delegation import (
    HANDED_OVER_BY as HANDED_OVER_BY,
    PARENT_LABEL as PARENT_LABEL,
    agent_tool as agent_tool,
    handoff_tool as handoff_tool,
    linked_labels as linked_labels,
)
from .guardrails import (
    Ask as Ask,
    Block as Block,
    Guardrail as Guardrail,
    GuardrailDecision as GuardrailDecision,
    Guardrails as Guardrails,
    Rewrite as Rewrite,
    RunBlocked as RunBlocked,
    guardrail as guardrail,
)
from .history import (
    CapToolResults as CapToolResults,
    HistoryProcessor as HistoryProcessor,
    HistoryRun as HistoryRun,
    KeepLastTurns as KeepLastTurns,
    Processed as Processed,
    Summarize as Summarize,
    TokenBudget as TokenBudget,
)
from .output import OutputFormat as OutputFormat
from .refine import refine_calls as refine_calls
from .session import (
    Route as Route,
    Router as Router,
    RouteRequest as RouteRequest,
    new_episode_id as new_episode_id,
    pending_approvals as pending_approvals,
)
from .types import (
    REFINE_PROMPT as REFINE_PROMPT,
    Approval as Approval,
    Approver as Approver,
    CallsRefined as CallsRefined,
    Decision as Decision,
    FinishedRun as FinishedRun,
    HandedOver as HandedOver,
    Instructions as Instructions,
    Limits as Limits,
    Observer as Observer,
    RefineSettings as RefineSettings,
    ResumeOptions as ResumeOptions,
    RunEvent as RunEvent,
    RunFinished as RunFinished,
    RunOptions as RunOptions,
    RunResult as RunResult,
    RunStarted as RunStarted,
    SelectionPolicy as SelectionPolicy,
    StorePolicy as StorePolicy,
    ToolCallFinished as ToolCallFinished,
    ToolCallStarted as ToolCallStarted,
    ToolPolicy as ToolPolicy,
    ToolProgress as ToolProgress,
    ToolsRetrieved as ToolsRetrieved,
    TurnFinished as TurnFinished,
)
