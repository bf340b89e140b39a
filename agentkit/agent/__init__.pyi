from .refine import REFINE_PROMPT as REFINE_PROMPT, RefineSettings as RefineSettings
from .session import (
    Route as Route,
    Router as Router,
    RouteRequest as RouteRequest,
    new_episode_id as new_episode_id,
)
from .types import (
    Approval as Approval,
    Approver as Approver,
    CallsRefined as CallsRefined,
    Decision as Decision,
    FinishedRun as FinishedRun,
    Limits as Limits,
    Observer as Observer,
    RunEvent as RunEvent,
    RunFinished as RunFinished,
    RunResult as RunResult,
    RunStarted as RunStarted,
    SelectionPolicy as SelectionPolicy,
    StorePolicy as StorePolicy,
    ToolCallFinished as ToolCallFinished,
    ToolCallStarted as ToolCallStarted,
    ToolPolicy as ToolPolicy,
    ToolsRetrieved as ToolsRetrieved,
    TurnFinished as TurnFinished,
)
