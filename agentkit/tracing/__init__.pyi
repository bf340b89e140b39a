from .content import ContentPolicy as ContentPolicy
from .conventions import CONVENTIONS_VERSION as CONVENTIONS_VERSION
from .facts import (
    facts_after as facts_after,
    facts_before as facts_before,
)
from .logs import LoggingTracing as LoggingTracing
from .otel import (
    OpenTelemetryTracing as OpenTelemetryTracing,
    observe_replica as observe_replica,
)
from .tracer import (
    ChatOperation as ChatOperation,
    ChildOperation as ChildOperation,
    ChildResult as ChildResult,
    ChildSpans as ChildSpans,
    GuardrailOperation as GuardrailOperation,
    GuardrailVerdict as GuardrailVerdict,
    Operation as Operation,
    Outcome as Outcome,
    RetrievalOperation as RetrievalOperation,
    Retry as Retry,
    RunOperation as RunOperation,
    Span as Span,
    ToolOperation as ToolOperation,
    Tracer as Tracer,
)
from .tracing import (
    TracedRetriever as TracedRetriever,
    Tracing as Tracing,
    traced_model as traced_model,
)
