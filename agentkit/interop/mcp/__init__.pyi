from .client import (
    McpServer as McpServer,
    McpServers as McpServers,
)
from .library_server import LibraryServer as LibraryServer
from .listing import (
    HeldTool as HeldTool,
    ListedTool as ListedTool,
    Listing as Listing,
    McpLimits as McpLimits,
)
from .serving import HiddenTool as HiddenTool
from .snapshots import (
    approved_in as approved_in,
    keep_tools as keep_tools,
)
