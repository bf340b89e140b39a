"""What an agent does, live: OpenTelemetry spans and metrics, and log lines.

``Agent(..., tracing=Tracing())`` follows OpenTelemetry's GenAI conventions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
