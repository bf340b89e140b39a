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
    from agentkit.tracing.guarded import Tracing
    from agentkit.tracing.logs import LoggingTracing
    from agentkit.tracing.models import TracedRetriever, traced_model
    from agentkit.tracing.operations import (
        ChatOperation,
        ChildOperation,
        ChildResult,
        GuardrailOperation,
        GuardrailVerdict,
        Operation,
        Outcome,
        RetrievalOperation,
        Retry,
        RunOperation,
        ToolOperation,
    )
    from agentkit.tracing.otel import OpenTelemetryTracing
    from agentkit.tracing.replicas import observe_replica
    from agentkit.tracing.tracer import ChildSpans, Span, Tracer

_MODULES = {
    "CONVENTIONS_VERSION": "agentkit.tracing.conventions",
    "ChatOperation": "agentkit.tracing.operations",
    "ChildOperation": "agentkit.tracing.operations",
    "ChildResult": "agentkit.tracing.operations",
    "ChildSpans": "agentkit.tracing.tracer",
    "ContentPolicy": "agentkit.tracing.content",
    "GuardrailOperation": "agentkit.tracing.operations",
    "GuardrailVerdict": "agentkit.tracing.operations",
    "LoggingTracing": "agentkit.tracing.logs",
    "OpenTelemetryTracing": "agentkit.tracing.otel",
    "Operation": "agentkit.tracing.operations",
    "Outcome": "agentkit.tracing.operations",
    "RetrievalOperation": "agentkit.tracing.operations",
    "Retry": "agentkit.tracing.operations",
    "RunOperation": "agentkit.tracing.operations",
    "Span": "agentkit.tracing.tracer",
    "ToolOperation": "agentkit.tracing.operations",
    "TracedRetriever": "agentkit.tracing.models",
    "Tracer": "agentkit.tracing.tracer",
    "Tracing": "agentkit.tracing.guarded",
    "facts_after": "agentkit.tracing.facts",
    "facts_before": "agentkit.tracing.facts",
    "observe_replica": "agentkit.tracing.replicas",
    "traced_model": "agentkit.tracing.models",
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
