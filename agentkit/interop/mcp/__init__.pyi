from .client import (
    McpServer as McpServer,
    McpServers as McpServers,
    approved_in as approved_in,
    keep_tools as keep_tools,
)
from .elicitation import Elicitation as Elicitation, ElicitationAnswer as ElicitationAnswer
from .library_server import LibraryServer as LibraryServer
from .listing import (
    HeldTool as HeldTool,
    ListedTool as ListedTool,
    Listing as Listing,
    McpLimits as McpLimits,
)
