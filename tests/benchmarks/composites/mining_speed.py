"""How long mining takes: random episodes of 300 shapes over 40 tools, CPU seconds of one process.

python tests/benchmarks/composites/mining_speed.py [--episodes N]
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import replace

from agentkit import ToolDefinition
from agentkit.evolution.mining import mine
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory, find_flows
from agentkit.tools.definition import Effects

TEXT = {"type": "string"}
PLACE = ("items", 0, "id")


def tools() -> dict[str, ToolDefinition]:
    """Forty tools that read, with two parameters each."""
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    reads = Effects.of(["reads"])
    names = [f"tool_{number}" for number in range(40)]
    return {
        name: ToolDefinition.from_schema(name, "Reads.", schema, effects=reads) for name in names
    }


def shape(chance: random.Random, names: list[str]) -> list[tuple[str, dict[str, int | None]]]:
    """Two to eight calls; six of ten arguments come from an earlier call."""
    return [
        (
            chance.choice(names),
            {
                name: chance.randrange(at) if at and chance.random() < 0.6 else None
                for name in ("a", "b")
            },
        )
        for at in range(chance.randint(2, 8))
    ]


def corpus(count: int, names: list[str]) -> list[Trajectory]:
    """Episodes, each of a random one of the shapes."""
    chance = random.Random(1)
    shapes = [shape(chance, names) for _ in range(300)]
    made = []
    for number in range(count):
        steps = [
            Step(
                tool=tool,
                sources={
                    name: Given(value=f"v{chance.randrange(1000)}")
                    if earlier is None
                    else Flow(step=earlier, path=PLACE)
                    for name, earlier in sources.items()
                },
                result={"items": [{"id": f"{number}-{at}"}]},
            )
            for at, (tool, sources) in enumerate(chance.choice(shapes))
        ]
        made.append(Trajectory(trajectory_id=f"e{number}", steps=tuple(steps)))
    return made


def bare(trajectory: Trajectory) -> Trajectory:
    """The same with values in the place of flows."""
    steps = [
        replace(
            step, sources={n: Given(value=trajectory.value(s)) for n, s in step.sources.items()}
        )
        for step in trajectory.steps
    ]
    return replace(trajectory, steps=tuple(steps))


def main() -> None:
    """Print how long finding flows and mining take."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=10_000)
    known = tools()
    episodes = [bare(one) for one in corpus(parser.parse_args().episodes, sorted(known))]
    start = time.process_time()
    flow = find_flows(episodes)
    middle = time.process_time()
    result = mine(flow.trajectories, known)
    end = time.process_time()
    print(f"{result.trajectories:,} episodes, {result.calls:,} calls")
    print(f"flows: {middle - start:.1f} s, {len(flow.routes)} routes")
    print(f"mining: {end - middle:.1f} s, {len(result.composites)} composites")


if __name__ == "__main__":
    main()
