"""Small language models inside the process: GGUF files through llama.cpp.

``model="local:smollm2-135m"`` and ``model="local:/path/to/model.gguf"`` resolve to ``LocalModel``.
"""

from __future__ import annotations

from agentkit_local._version import __version__
from agentkit_local.engine import LocalEngine
from agentkit_local.model import LocalModel, resolve
from agentkit_local.threads import default_threads

__all__ = ["LocalEngine", "LocalModel", "__version__", "default_threads", "resolve"]
