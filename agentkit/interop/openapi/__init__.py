"""APIs described by OpenAPI 3.0, 3.1 and 3.2 as tools, called over HTTP.

``openapi_tools`` is the way in; ``OpenApiReport`` tells what could not be mapped and why.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
