from .content import ContentPolicy as ContentPolicy
from .spans import (
    chat_span as chat_span,
    guardrail_span as guardrail_span,
    retrieval_span as retrieval_span,
    run_span as run_span,
    tool_span as tool_span,
)
from .tracing import (
    CONVENTIONS_VERSION as CONVENTIONS_VERSION,
    Tracing as Tracing,
)
