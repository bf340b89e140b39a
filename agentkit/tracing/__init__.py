"""What an agent does, told while it does it: OpenTelemetry spans and metrics, and lines of a log.

``Agent(..., tracing=Tracing())`` follows OpenTelemetry's GenAI conventions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
