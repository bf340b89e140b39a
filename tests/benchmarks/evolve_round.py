"""How long a round of ``agentkit evolve`` over 1,000 episodes takes, without a model (docs/evolution.md).

    python tests/benchmarks/evolve_round.py [--episodes N]

A shop with twelve tools is lived: some calls are refused, some conversations look up and then act
on what they found. The round reads the store, learns from refusals, mines composites and examples,
and writes what comes of it, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness import arguments, report

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.definition import Effects

MAIN = "from agentkit.cli.main import main; main()"
KINDS = 6


def shop() -> Iterator[ToolDefinition]:
    """Look-ups of an item by its name, and orders of so many for a term in months."""
    for kind in range(KINDS):
        yield ToolDefinition.from_schema(
            f"find_{kind}",
            f"Items of kind {kind} by name.",
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            effects=Effects.of(["reads"]),
        )
        yield ToolDefinition.from_schema(
            f"order_{kind}",
            f"Order an item of kind {kind}.",
            {
                "properties": {"code": {"type": "string"}, "months": {"type": "integer"}},
                "required": ["code", "months"],
            },
            effects=Effects.of(["reads"]),
        )


def lived(number: int) -> Episode:
    """One customer: a look-up, an order that is refused in one of three cases, an answer."""
    kind, refused = number % KINDS, number % 3 == 0
    name, code = f"item {number}", f"C-{number:05}"
    months = 10 + number % 20 if refused else (12, 24, 36)[number % 3]
    look = ToolCall(call_id="1", name=f"find_{kind}", arguments={"name": name})
    order = ToolCall(call_id="2", name=f"order_{kind}", arguments={"code": code, "months": months})
    rule = f"months must be one of 12, 24, 36, got {months}"
    failure = ToolFailure(kind="retry_requested", rule=rule)
    found = ToolResult(call_id="1", name=look.name, status="ok", value=[{"code": code}])
    done = (
        ToolResult(call_id="2", name=order.name, status="failed", failure=failure)
        if refused
        else ToolResult(call_id="2", name=order.name, status="ok", value=f"ordered {code}")
    )
    turns = (
        Turn(message=AssistantMessage(tool_calls=(look,)), results=(found,)),
        Turn(message=AssistantMessage(tool_calls=(order,)), results=(done,)),
        Turn(message=AssistantMessage(text="Refused." if refused else f"Ordered {code}.")),
    )
    return Episode(
        episode_id=f"{number:024x}",
        request=f"Please order {name} of kind {kind} for {months} months",
        turns=turns,
        output=turns[-1].message.text,
        stop_reason="finished",
        verdict=Verdict(passed=not refused, verifier="bench"),
    )


def round_seconds(count: int) -> float:
    """Live the episodes, and make a round in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'library.db'}"
        store = open_store(url)
        ToolManager(store).register(list(shop()), reason="a shop")
        for number in range(count):
            store.append(lived(number))
        store.close()
        began = time.perf_counter()
        words = ["evolve", "--store", url]
        subprocess.run([sys.executable, "-c", MAIN, *words], check=True)
        return time.perf_counter() - began


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--episodes", type=int, default=1_000)
    options = parser.parse_args()
    seconds = round_seconds(options.episodes)
    report([{"episodes": options.episodes, "wall s, process included": seconds}], options)
