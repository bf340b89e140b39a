"""Running a program: lowered once to Python closures, metered, over the bound children.

``runner`` is the way in. ``lowering`` and ``statements`` turn nodes into closures over a frame;
``operations``, ``functions``, ``methods`` and ``consumers`` are what the closures compute with,
each guarded by the ``meter``; ``children`` calls one child. For programs that have to wait for
children, ``scheduling`` says what runs side by side, ``awaiting`` and ``slow_items`` wait inside
expressions, and ``waiting`` calls one child.

A lazy door, because ``expressions`` needs the lowering and ``runner`` needs the expressions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
