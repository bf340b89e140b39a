"""What tracing costs: CPU of a run without a tracer, with a log, and with OpenTelemetry.

    python tests/benchmarks/tracing/overhead.py [--rounds 6] [--runs 300] [--before DIR [--pairs]]

One run asks a scripted model twice and makes one call: of a plain tool, or of a composite that calls
ten others. The variants take turns in processes of their own; the least over all stretches of
20 runs is reported, because other work on the machine only ever adds, with its difference from ``off``.
With ``--before DIR`` the code of another checkout (``git archive``) takes part, without a tracer. Such a
process and one of ``off`` follow each other, and the median over these pairs is reported too: of two
minima of so little, either can be the luckier one. ``--pairs`` measures nothing else.

Variants: ``off``; ``logging`` (lines at INFO, to a handler that drops them) and ``logging debug``;
``otel api`` (no SDK: every span does nothing); ``otel sdk`` (spans and metrics, exported to memory);
``otel content`` (the same with texts, arguments and results); ``otel children`` (child spans of all
composites, not only of those that failed).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[3]
VARIANTS = (
    "off",
    "logging",
    "logging debug",
    "otel api",
    "otel sdk",
    "otel content",
    "otel children",
)
CHILDREN = (0, 10)
WARM_UP = 30
STRETCH = 20


def sdk_tracer(**options: Any) -> Any:
    """A tracer that exports to memory, and what empties the memory."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from agentkit.tracing import Tracing

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(metric_readers=[InMemoryMetricReader()])
    tracer = Tracing(tracer_provider=provider, meter_provider=meters, **options)
    return tracer, exporter.clear


def log_tracer(level: int) -> Any:
    """A tracer that writes to a handler which drops what it gets."""
    from agentkit.tracing import Tracing

    logger = logging.getLogger("measured")
    logger.setLevel(level)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return Tracing(logger), None


def tracer_for(variant: str) -> Any:
    """The tracer of a variant, and what empties its memory."""
    if variant in {"off", "before"}:
        return None, None
    if variant.startswith("logging"):
        return log_tracer(logging.DEBUG if variant.endswith("debug") else logging.INFO)
    from agentkit.tracing import ContentPolicy, Tracing

    if variant == "otel api":
        return Tracing(), None
    if variant == "otel content":
        return sdk_tracer(content=ContentPolicy())
    return sdk_tracer(child_spans="all" if variant == "otel children" else "errors")


def agent_for(variant: str, children: int) -> Any:
    """An agent that makes one call, of a composite that makes so many, and answers."""
    from agentkit import Agent, tool
    from agentkit.composites.composite import composite_tool
    from agentkit.composites.source import compose
    from agentkit.library.library import Library
    from agentkit.messages import AssistantMessage, ToolCall, Usage
    from agentkit.models.base import ModelResponse
    from agentkit.testing import FunctionModel

    @tool
    async def plain(x: float) -> float:
        """Add one."""
        return x + 1

    @tool
    def child(x: float) -> float:
        """Add one."""
        return x + 1

    lines = "".join("    x = child(x)\n" for _ in range(children))
    text = f"def many(x: float) -> float:\n{lines}    return x"
    tools = [plain, child]
    if children:
        tools.append(composite_tool(compose(text, {"child": child}), {"child": child}))
    call = ToolCall(call_id="c1", name="many" if children else "plain", arguments={"x": 1.0})
    usage = Usage(requests=1, prompt_tokens=500, completion_tokens=20)
    asks = ModelResponse(message=AssistantMessage(tool_calls=(call,)), usage=usage)
    says = ModelResponse(message=AssistantMessage(text="Done."), usage=usage)
    model = FunctionModel(lambda request: asks if len(request.messages) == 2 else says)
    tracer, empty = tracer_for(variant)
    options = {} if variant == "before" else {"tracer": tracer}
    agent = Agent(
        model, library=Library(tools), instructions="Be brief. " * 20, retriever=None, **options
    )
    return agent, model, empty


def measure(variant: str, children: int, runs: int) -> float:
    """Microseconds of CPU a run: the least of many short stretches in one event loop."""
    agent, model, empty = agent_for(variant, children)

    async def several(count: int) -> float:
        gc.collect()
        began = time.process_time()
        for _ in range(count):
            await agent.run("What is it? " * 5)
            model.requests.clear()
            if empty is not None:
                empty()
        return (time.process_time() - began) / count

    async def work() -> float:
        await several(WARM_UP)
        return min([await several(STRETCH) for _ in range(runs // STRETCH)])

    return asyncio.run(work()) * 1e6


def in_process(variant: str, children: int, runs: int, root: Path) -> float:
    """The same in a fresh process, with the package of ``root``."""
    asked = json.dumps([variant, children, runs])
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE), "--one", asked]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Measure all variants in turns and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--pairs", action="store_true", help="measure off against before alone")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        sys.stdout.write(f"{measure(*json.loads(given.one))}\n")
        return
    variants = (
        *(("before",) if given.before else ()),
        *(VARIANTS[:1] if given.pairs else VARIANTS),
    )
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(given.rounds):
        for children in CHILDREN:
            # Every other round goes backwards, so that neither of a pair is always the first.
            for variant in variants[:: -1 if number % 2 else 1]:
                root = given.before if variant == "before" else ROOT
                took = in_process(variant, children, given.runs, root)
                found.setdefault((variant, children), []).append(took)
    sys.stdout.write(table(variants, found))
    if given.before:
        sys.stdout.write(paired(found))


def table(variants: tuple[str, ...], found: dict[tuple[str, int], list[float]]) -> str:
    """The least of each, and the difference from ``off``."""
    lines = ["| tracer | one plain call | one composite of 10 |", "|---|---|---|"]
    for variant in variants:
        cells = []
        for children in CHILDREN:
            took, off = min(found[variant, children]), min(found["off", children])
            cells.append(f"{took:.0f} µs{'' if variant == 'off' else f' ({took - off:+.0f})'}")
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join([*lines, f"load {os.getloadavg()[0]:.1f}", ""])


def paired(found: dict[tuple[str, int], list[float]]) -> str:
    """The median difference of ``off`` from ``before`` over pairs of processes, with quartiles."""
    lines = []
    for children in CHILDREN:
        pairs = zip(found["off", children], found["before", children], strict=True)
        low, middle, high = statistics.quantiles([off - was for off, was in pairs], n=4)
        before = statistics.median(found["before", children])
        lines.append(
            f"{children} children: {middle:+.1f} µs of {before:.0f} (quartiles {low:+.1f}, {high:+.1f})"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
