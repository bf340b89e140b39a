"""An agent over HTTP: OpenAI's chat completions in front, episodes behind.

``create_app`` makes the ASGI application, ``serve`` runs it. A name loads its module when it is
first used; Starlette and uvicorn, the extra ``serve``, load inside these two functions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
