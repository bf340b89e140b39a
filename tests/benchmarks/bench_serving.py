"""What routing, watching and shadow runs cost before an answer.

    python tests/benchmarks/bench_serving.py --rounds 30 --json serving.json

Each round runs every variant in turn, so that a busy machine slows all of them alike; what is shown
is the median over the rounds of the mean processor time of one run, and of the difference to the
plain agent. The model answers at once, so all that is measured is ours.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agentkit import Agent, ToolDefinition, open_store
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.evolution.shadow import ShadowLimits, ShadowRunner
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.events import Author
from agentkit.library.store import LibraryChange, Store
from agentkit.testing import FunctionModel

TOOLS = 32


def filled_store(stage: str | None) -> Store:
    """A library, and with a stage a proposal for one of its tools in it."""
    store = open_store("memory:")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [ToolDefinition.from_schema(f"tool_{n}", "Does it.", schema) for n in range(TOOLS)]
    store.commit(LibraryChange(proposal_id="p", upserts=tuple(tools)), expected_version=0)
    if stage is not None:
        base, ada = tools[0], Author(kind="person", name="ada")
        candidate = replace(base, description=replace(base.description, summary="Better."))
        proposal = Proposal.of(base, candidate, stream="person", author=ada)
        first = {"proposal": proposal.to_json(), "base": base.digest}
        drafts = [
            EventDraft(
                kind=kind,  # type: ignore[arg-type]  # the states are among the kinds
                author=ada,
                proposal_id=proposal.proposal_id,
                tool_name=base.name,
                facts=first if kind == "proposed" else {},
            )
            for kind in ("proposed", "validated", stage)
        ]
        events = chained(None, drafts, at="2026-11-21T12:00:00Z")
        store.commit(LibraryChange(proposal_id="e", events=events), expected_version=1)
    return store


def plain() -> Agent:
    """No router, no observer."""
    return Agent(FunctionModel(lambda _: "done"), library=filled_store(None).load())


def routed(stage: str | None) -> Agent:
    """With a router, whose ledger is fresh."""
    store = filled_store(stage)
    router = CanaryRouter(LedgerWatch(store, refresh_seconds=3600), share=0.5)
    return Agent(FunctionModel(lambda _: "done"), library=store.load(), router=router)


def shadowed(stage: str | None) -> Agent:
    """With an observer; its queue is full, so that what is measured is what an answer waits for."""
    store = filled_store(stage)
    watch = LedgerWatch(store, refresh_seconds=3600)
    watch.read()
    shadow = ShadowRunner(store, watch=watch, limits=ShadowLimits(queue=0))
    return Agent(FunctionModel(lambda _: "done"), library=store.load(), observers=[shadow])


VARIANTS: dict[str, Callable[[], Agent]] = {
    "plain": plain,
    "plain, again": plain,
    "router, nothing tried": lambda: routed(None),
    "router, one canary": lambda: routed("canary"),
    "observer, nothing tried": lambda: shadowed(None),
    "observer, one shadow": lambda: shadowed("shadow"),
}


async def timed(agent: Agent, runs: int) -> float:
    """Mean processor seconds of one run."""
    started = time.process_time()
    for _ in range(runs):
        await agent.run("hi")
    return (time.process_time() - started) / runs


async def measured(rounds: int, runs: int, names: list[str]) -> dict[str, list[float]]:
    """Microseconds of one run by variant and round; the first round warms up."""
    agents = {name: VARIANTS[name]() for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name, agent in agents.items():
            seconds = await timed(agent, runs)
            if number:
                times[name].append(seconds * 1e6)
    return times


def main() -> None:
    """Print the table, and write it as JSON if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--runs", type=int, default=200, help="runs of a variant in each round")
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    times = asyncio.run(measured(given.rounds, given.runs, given.only))
    base = times[given.only[0]]
    print(f"{'variant':26}{'µs a run':>10}{'more, µs':>10}")
    table = {}
    for name, found in times.items():
        more = statistics.median(a - b for a, b in zip(found, base, strict=True))
        table[name] = {"microseconds": statistics.median(found), "more": more}
        print(f"{name:26}{table[name]['microseconds']:10.1f}{more:10.1f}")
    if given.json:
        given.json.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
