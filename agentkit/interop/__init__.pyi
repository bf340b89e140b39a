from .langchain import (
    library_agent as library_agent,
    library_middleware as library_middleware,
)
from .openai_agents import LibraryRunner as LibraryRunner
from .pydantic_ai import library_capability as library_capability
from .toolset import (
    Toolset as Toolset,
    ToolsetRun as ToolsetRun,
)
