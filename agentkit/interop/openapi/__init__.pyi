from .credentials import (
    BasicEnv as BasicEnv,
    Env as Env,
)
from .documents import (
    RemoteReferences as RemoteReferences,
    is_openapi as is_openapi,
    read_document as read_document,
)
from .http_client import CallPolicy as CallPolicy
from .importing import (
    OpenApiTools as OpenApiTools,
    openapi_tools as openapi_tools,
)
from .report import (
    OpenApiNote as OpenApiNote,
    OpenApiReport as OpenApiReport,
    OperationReport as OperationReport,
)
