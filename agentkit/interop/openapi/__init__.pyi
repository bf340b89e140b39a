from .credentials import (
    BasicEnv as BasicEnv,
    Env as Env,
)
from .documents import (
    is_openapi as is_openapi,
    read_document as read_document,
)
from .importing import (
    OpenApiTools as OpenApiTools,
    openapi_tools as openapi_tools,
)
from .remote import RemoteReferences as RemoteReferences
from .report import (
    OpenApiNote as OpenApiNote,
    OpenApiReport as OpenApiReport,
    OperationReport as OperationReport,
)
from .sending import CallPolicy as CallPolicy
