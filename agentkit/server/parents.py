"""``below_caller``: runs are a part of the trace that their client is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def below_caller(headers: Mapping[str, str]) -> Iterator[None]:
    """Spans that begin inside hang below the one that ``traceparent`` names.

    Nothing happens without that header, without OpenTelemetry, and where the server's own
    instrumentation has made a span for the request already.

    Args:
        headers: Headers of the request, names in lower case.
    """
    if "traceparent" not in headers:
        yield
        return
    try:
        from opentelemetry import context, propagate, trace
    except ImportError:
        yield
        return
    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)
