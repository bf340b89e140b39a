from .credentials import (
    BasicEnv as BasicEnv,
)
from .credentials import (
    Env as Env,
)
from .documents import (
    is_openapi as is_openapi,
)
from .documents import (
    read_document as read_document,
)
from .importing import (
    OpenApiTools as OpenApiTools,
)
from .importing import (
    openapi_tools as openapi_tools,
)
from .remote import RemoteReferences as RemoteReferences
from .report import (
    OpenApiNote as OpenApiNote,
)
from .report import (
    OpenApiReport as OpenApiReport,
)
from .report import (
    OperationReport as OperationReport,
)
from .sending import CallPolicy as CallPolicy
