"""What an agent does, told while it does it: spans and metrics of OpenTelemetry, or lines of a log.

``Agent(..., tracer=OpenTelemetryTracing())`` follows OpenTelemetry's GenAI conventions;
``LoggingTracing`` tells the same to Python's ``logging``; ``Tracer`` is the seam for others.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
