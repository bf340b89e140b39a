from .langchain import (
    library_agent as library_agent,
)
from .langchain import (
    library_middleware as library_middleware,
)
from .langchain import (
    to_langchain as to_langchain,
)
from .openai_agents import (
    LibraryRunner as LibraryRunner,
)
from .openai_agents import (
    to_openai_agents as to_openai_agents,
)
from .pydantic_ai import (
    library_capability as library_capability,
)
from .pydantic_ai import (
    library_toolset as library_toolset,
)
from .pydantic_ai import (
    to_pydantic_ai as to_pydantic_ai,
)
from .toolset import Toolset as Toolset
from .toolset_run import ToolsetRun as ToolsetRun
