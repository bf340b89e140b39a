from .langchain import (
    library_agent as library_agent,
    library_middleware as library_middleware,
    to_langchain as to_langchain,
)
from .openai_agents import (
    LibraryRunner as LibraryRunner,
    to_openai_agents as to_openai_agents,
)
from .pydantic_ai import (
    library_capability as library_capability,
    library_toolset as library_toolset,
    to_pydantic_ai as to_pydantic_ai,
)
from .toolset import Toolset as Toolset
from .toolset_run import ToolsetRun as ToolsetRun
