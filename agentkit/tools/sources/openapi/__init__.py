"""APIs described by OpenAPI 3.0, 3.1 and 3.2 as tools, called over HTTP.

``openapi_tools`` is the way in; ``OpenApiReport`` tells what could not be mapped and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.sources.openapi.credentials import BasicEnv, Env
    from agentkit.tools.sources.openapi.documents import is_openapi, read_document
    from agentkit.tools.sources.openapi.importing import OpenApiTools, openapi_tools
    from agentkit.tools.sources.openapi.remote import RemoteReferences
    from agentkit.tools.sources.openapi.report import OpenApiNote, OpenApiReport, OperationReport
    from agentkit.tools.sources.openapi.sending import CallPolicy

__all__ = [
    "BasicEnv",
    "CallPolicy",
    "Env",
    "OpenApiNote",
    "OpenApiReport",
    "OpenApiTools",
    "OperationReport",
    "RemoteReferences",
    "is_openapi",
    "openapi_tools",
    "read_document",
]

_MODULES = {
    "BasicEnv": "agentkit.tools.sources.openapi.credentials",
    "CallPolicy": "agentkit.tools.sources.openapi.sending",
    "Env": "agentkit.tools.sources.openapi.credentials",
    "OpenApiNote": "agentkit.tools.sources.openapi.report",
    "OpenApiReport": "agentkit.tools.sources.openapi.report",
    "OpenApiTools": "agentkit.tools.sources.openapi.importing",
    "OperationReport": "agentkit.tools.sources.openapi.report",
    "RemoteReferences": "agentkit.tools.sources.openapi.remote",
    "is_openapi": "agentkit.tools.sources.openapi.documents",
    "openapi_tools": "agentkit.tools.sources.openapi.importing",
    "read_document": "agentkit.tools.sources.openapi.documents",
}

__getattr__ = lazy_door(__name__, _MODULES)
