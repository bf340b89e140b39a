"""1. What a tool is: a definition in four levels, and a binding that says how it runs.

``definition`` holds the records and ``tool`` the binding; ``decorator`` and ``sources`` make them
from functions, pydantic models and JSON. ``validation`` and ``coercion`` hold calls against them,
``rules`` are what was learned about a tool, ``types`` what its parameters and results are about.
``from agentkit import tool`` brings the decorator.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
