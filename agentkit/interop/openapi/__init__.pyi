from .documents import (
    is_openapi as is_openapi,
    read_document as read_document,
)
from .http_client import CallPolicy as CallPolicy
from .importing import (
    OpenApiReport as OpenApiReport,
    OpenApiTools as OpenApiTools,
    OperationReport as OperationReport,
    openapi_tools as openapi_tools,
)
from .requests import Env as Env
