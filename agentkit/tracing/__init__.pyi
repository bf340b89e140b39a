from .content import ContentPolicy as ContentPolicy
from .conventions import CONVENTIONS_VERSION as CONVENTIONS_VERSION
from .facts import (
    facts_after as facts_after,
)
from .facts import (
    facts_before as facts_before,
)
from .logs import LoggingTracing as LoggingTracing
from .otel import (
    OpenTelemetryTracing as OpenTelemetryTracing,
)
from .otel import (
    observe_replica as observe_replica,
)
from .tracer import (
    ChatOperation as ChatOperation,
)
from .tracer import (
    ChildOperation as ChildOperation,
)
from .tracer import (
    ChildResult as ChildResult,
)
from .tracer import (
    ChildSpans as ChildSpans,
)
from .tracer import (
    GuardrailOperation as GuardrailOperation,
)
from .tracer import (
    GuardrailVerdict as GuardrailVerdict,
)
from .tracer import (
    Operation as Operation,
)
from .tracer import (
    Outcome as Outcome,
)
from .tracer import (
    RetrievalOperation as RetrievalOperation,
)
from .tracer import (
    Retry as Retry,
)
from .tracer import (
    RunOperation as RunOperation,
)
from .tracer import (
    Span as Span,
)
from .tracer import (
    ToolOperation as ToolOperation,
)
from .tracer import (
    Tracer as Tracer,
)
from .tracing import (
    TracedRetriever as TracedRetriever,
)
from .tracing import (
    Tracing as Tracing,
)
from .tracing import (
    traced_model as traced_model,
)
