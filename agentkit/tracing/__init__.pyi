from .content import ContentPolicy as ContentPolicy
from .tracing import (
    CONVENTIONS_VERSION as CONVENTIONS_VERSION,
    ChildSpans as ChildSpans,
    Tracing as Tracing,
)
