"""What tracing costs: CPU of a run without a tracer, with a log, and with OpenTelemetry (docs/tracing.md).

    python tests/benchmarks/tracing/overhead.py [--rounds 6] [--runs 300]

One run asks a scripted model twice and makes one call: of a plain tool, or of a composite that calls
ten others. The variants take turns in processes of their own; the least over all stretches of 20 runs
is reported, because other work on the machine only ever adds, with its difference from ``off``.

Variants: ``off``; ``logging`` (lines at INFO, to a handler that drops them); ``otel api`` (no SDK:
every span does nothing); ``otel sdk`` (spans and metrics, exported to memory); ``otel content`` (the
same with texts, arguments and results).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, best, in_turns, report, result, worker

from agentkit import Agent, tool
from agentkit.composites.composite import composite_tool
from agentkit.composites.source import compose
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit.tracing import ContentPolicy, Tracing

VARIANTS = ("off", "otel api", "otel sdk", "otel content")
PARTS = {"one plain call": 0, "one composite of 10": 10}
WARM_UP, STRETCH = 30, 20


def tracer_for(variant: str) -> tuple[Tracing | None, Callable[[], object]]:
    """The tracer of a variant, and what empties its memory."""
    if variant in {"off", "otel api"}:
        return None if variant == "off" else Tracing(), lambda: None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()])
    content: dict[str, Any] = {"content": ContentPolicy()} if variant == "otel content" else {}
    tracer = Tracing(tracer_provider=provider, meter_provider=meters, **content)
    return tracer, exporter.clear


def agent_for(tracer: Tracing | None, children: int) -> tuple[Agent, FunctionModel]:
    """An agent that makes one call, of a composite that makes so many, and answers."""

    @tool
    async def plain(x: float) -> float:
        """Add one."""
        return x + 1

    @tool
    def child(x: float) -> float:
        """Add one."""
        return x + 1

    tools = [plain, child]
    if children:
        lines = "".join("    x = child(x)\n" for _ in range(children))
        program = compose(f"def many(x: float) -> float:\n{lines}    return x", {"child": child})
        tools.append(composite_tool(program, {"child": child}))
    call = ToolCall(call_id="c1", name="many" if children else "plain", arguments={"x": 1.0})
    usage = Usage(requests=1, prompt_tokens=500, completion_tokens=20)
    asks = ModelResponse(message=AssistantMessage(tool_calls=(call,)), usage=usage)
    says = ModelResponse(message=AssistantMessage(text="Done."), usage=usage)
    model = FunctionModel(lambda request: asks if len(request.messages) == 2 else says)
    words = "Be brief. " * 20
    agent = Agent(model, library=Library(tools), instructions=words, retriever=None, tracing=tracer)
    return agent, model


async def measured(variant: str, children: int, runs: int) -> float:
    """Microseconds of CPU a run: the least of many short stretches in one event loop."""
    tracer, empty = tracer_for(variant)
    agent, model = agent_for(tracer, children)

    async def several(count: int) -> float:
        gc.collect()
        began = time.process_time()
        for _ in range(count):
            await agent.run("What is it? " * 5)
            model.requests.clear()
            empty()
        return (time.process_time() - began) / count * 1e6

    await several(WARM_UP)
    return min([await several(STRETCH) for _ in range(max(1, runs // STRETCH))])


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=6)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one, count = options.one, options.runs
        result({part: asyncio.run(measured(one, n, count)) for part, n in PARTS.items()})
    else:
        command = [sys.executable, __file__, "--runs", str(options.runs), "--one"]
        measures = {name: partial(worker, [*command, name]) for name in VARIANTS}
        found = {name: best(rounds) for name, rounds in in_turns(measures, options.rounds).items()}
        rows = []
        for name, figures in found.items():
            row = {"tracer": name}
            for part, spent in figures.items():
                more = "" if name == "off" else f" ({spent - found['off'][part]:+.0f})"
                row[part] = f"{spent:.0f} µs{more}"
            rows.append(row)
        report(rows, options)
