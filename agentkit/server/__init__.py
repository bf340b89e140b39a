"""An agent over HTTP: OpenAI's chat completions in front, episodes behind.

``create_app`` makes the ASGI application, ``serve`` runs it. A name loads its module when it is
first used; Starlette and uvicorn, the extra ``serve``, load inside these two functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.server.app import create_app
    from agentkit.server.keys import Keys
    from agentkit.server.limits import ServerLimits
    from agentkit.server.running import serve, serving

__all__ = ["Keys", "ServerLimits", "create_app", "serve", "serving"]

_MODULES = {
    "Keys": "agentkit.server.keys",
    "ServerLimits": "agentkit.server.limits",
    "create_app": "agentkit.server.app",
    "serve": "agentkit.server.running",
    "serving": "agentkit.server.running",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
