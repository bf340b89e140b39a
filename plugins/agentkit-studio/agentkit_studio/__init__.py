"""The studio: review, watch and try an agent's tools in the browser.

``agentkit studio`` serves it; ``create_studio`` makes the same as an ASGI application.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
