"""Model Context Protocol, both ways: servers as tools, and a library as a server.

It is built on the official package ``mcp`` (the extra ``mcp``), which loads when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
