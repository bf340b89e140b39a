from .client.group import McpServers as McpServers
from .client.keeping import (
    approved_in as approved_in,
    keep_tools as keep_tools,
)
from .client.limits import McpLimits as McpLimits
from .client.listing import (
    HeldTool as HeldTool,
    ListedTool as ListedTool,
    Listing as Listing,
)
from .client.server import McpServer as McpServer
from .serving.exposure import HiddenTool as HiddenTool
from .serving.library_server import LibraryServer as LibraryServer
