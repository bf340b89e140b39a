"""What an agent does, told while it does it: spans and metrics of OpenTelemetry, or lines of a log.

``Agent(..., tracer=OpenTelemetryTracing())`` follows OpenTelemetry's GenAI conventions;
``LoggingTracing`` tells the same to Python's ``logging``; ``Tracer`` is the seam for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tracing.content import ContentPolicy
    from agentkit.tracing.conventions import CONVENTIONS_VERSION
    from agentkit.tracing.facts import facts_after, facts_before
    from agentkit.tracing.logs import LoggingTracing
    from agentkit.tracing.otel import OpenTelemetryTracing, observe_replica
    from agentkit.tracing.tracer import (
        ChatOperation,
        ChildOperation,
        ChildResult,
        ChildSpans,
        GuardrailOperation,
        GuardrailVerdict,
        Operation,
        Outcome,
        RetrievalOperation,
        Retry,
        RunOperation,
        Span,
        ToolOperation,
        Tracer,
    )
    from agentkit.tracing.tracing import TracedRetriever, Tracing, traced_model

_MODULES = {
    "CONVENTIONS_VERSION": "agentkit.tracing.conventions",
    "ChatOperation": "agentkit.tracing.tracer",
    "ChildOperation": "agentkit.tracing.tracer",
    "ChildResult": "agentkit.tracing.tracer",
    "ChildSpans": "agentkit.tracing.tracer",
    "ContentPolicy": "agentkit.tracing.content",
    "GuardrailOperation": "agentkit.tracing.tracer",
    "GuardrailVerdict": "agentkit.tracing.tracer",
    "LoggingTracing": "agentkit.tracing.logs",
    "OpenTelemetryTracing": "agentkit.tracing.otel",
    "Operation": "agentkit.tracing.tracer",
    "Outcome": "agentkit.tracing.tracer",
    "RetrievalOperation": "agentkit.tracing.tracer",
    "Retry": "agentkit.tracing.tracer",
    "RunOperation": "agentkit.tracing.tracer",
    "Span": "agentkit.tracing.tracer",
    "ToolOperation": "agentkit.tracing.tracer",
    "TracedRetriever": "agentkit.tracing.tracing",
    "Tracer": "agentkit.tracing.tracer",
    "Tracing": "agentkit.tracing.tracing",
    "facts_after": "agentkit.tracing.facts",
    "facts_before": "agentkit.tracing.facts",
    "observe_replica": "agentkit.tracing.otel",
    "traced_model": "agentkit.tracing.tracing",
}

__all__ = [
    "CONVENTIONS_VERSION",
    "ChatOperation",
    "ChildOperation",
    "ChildResult",
    "ChildSpans",
    "ContentPolicy",
    "GuardrailOperation",
    "GuardrailVerdict",
    "LoggingTracing",
    "OpenTelemetryTracing",
    "Operation",
    "Outcome",
    "RetrievalOperation",
    "Retry",
    "RunOperation",
    "Span",
    "ToolOperation",
    "TracedRetriever",
    "Tracer",
    "Tracing",
    "facts_after",
    "facts_before",
    "observe_replica",
    "traced_model",
]

__getattr__ = lazy_door(__name__, _MODULES)
