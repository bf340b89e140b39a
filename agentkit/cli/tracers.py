"""``--trace``: who is told what runs do while they do it."""

from __future__ import annotations

import logging
from typing import Literal

import click

from agentkit.cli.output import say
from agentkit.tracing.tracing import LOGGER, Tracing

TraceKind = Literal["log", "otel"]

trace_option = click.option(
    "--trace",
    type=click.Choice(["log", "otel"]),
    help="Tell what runs do: log writes a line on stderr for each step, otel makes OpenTelemetry "
    "spans (start the command with opentelemetry-instrument, which says where they go).",
)


def tracer_of(kind: TraceKind | None) -> Tracing | None:
    """What tells of runs in that way; None for nobody.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.
    """
    if kind is None:
        return None
    if kind == "log":
        return _on_stderr()
    tracing = Tracing()
    if not _has_sdk():
        say(
            "Nobody takes the spans: no OpenTelemetry SDK is set up in this process. Install "
            "opentelemetry-distro and an exporter, and start with opentelemetry-instrument."
        )
    return tracing


def _has_sdk() -> bool:
    """Whether somebody set up where spans go; the API alone drops them."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _on_stderr() -> Tracing:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger(LOGGER)
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return Tracing(log=logger)
