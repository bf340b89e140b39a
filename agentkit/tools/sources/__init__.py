"""Definitions from where they are found: functions, pydantic models, JSON records.

Every source gives the same ``ToolDefinition`` and remembers in its ``origin`` where it came from.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
