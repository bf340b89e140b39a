"""Definitions from where they are found: functions, pydantic models, JSON records.

Every source gives the same ``ToolDefinition`` and remembers in its ``origin`` where it came from.

This is a lazy door: what reads a source loads when there is one to read.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
