"""The histograms of the GenAI conventions: how long operations take, and how many tokens."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentkit._version import __version__
from agentkit.tracing import conventions as names
from agentkit.tracing.facts import provider_of, tool_name
from agentkit.tracing.operations import (
    ChatOperation,
    Operation,
    RunOperation,
    ToolOperation,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

OWN_PROVIDER = "agentkit"
"""The provider of what runs in this process; the conventions want one of every measurement."""


class Instruments:
    """Records what operations took.

    Args:
        metrics: The module ``opentelemetry.metrics``.
        provider: Makes the histograms; None takes the global one.
    """

    def __init__(self, metrics: ModuleType, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter("agentkit", __version__, provider, names.SCHEMA_URL)
        self._duration = meter.create_histogram(
            names.DURATION,
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            names.TOKENS,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )

    def record(self, operation: Operation, facts: Mapping[str, Any], seconds: float) -> None:
        """Record an operation that is over.

        Tokens are those of requests to models; a run's own would count them twice. Checks, searches
        and calls inside composites are parts of what is recorded, and not recorded again.

        Args:
            operation: What.
            facts: What was known at its end.
            seconds: How long it took.
        """
        about = _dimensions(operation)
        if about is None:
            return
        for name in (names.RESPONSE_MODEL, names.ERROR):
            if name in facts:
                about[name] = facts[name]
        self._duration.record(seconds, about)
        if isinstance(operation, ChatOperation) and names.INPUT_TOKENS in facts:
            about.pop(names.ERROR, None)
            self._tokens.record(facts[names.INPUT_TOKENS], {**about, names.TOKEN_TYPE: "input"})
            self._tokens.record(facts[names.OUTPUT_TOKENS], {**about, names.TOKEN_TYPE: "output"})


def _dimensions(operation: Operation) -> dict[str, Any] | None:
    """What to tell measurements apart by: few values each, and no text; None for no measurement."""
    match operation:
        case ChatOperation(model=model):
            kind, own = names.CHAT, {names.REQUEST_MODEL: model.name}
        case RunOperation(agent=agent, model=model):
            kind, own = names.INVOKE_AGENT, {names.AGENT: agent, names.REQUEST_MODEL: model.name}
        case ToolOperation(tool=tool):
            kind, own = names.EXECUTE_TOOL, {names.TOOL: tool_name(tool)}
            return {names.OPERATION: kind, names.PROVIDER: OWN_PROVIDER, **own}
        case _:
            return None
    return {names.OPERATION: kind, names.PROVIDER: provider_of(model), **own}
