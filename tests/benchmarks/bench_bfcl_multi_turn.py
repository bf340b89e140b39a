"""What BFCL's multi-turn questions cost beside the model: worlds, calls, states, verdicts.

    python tests/benchmarks/bench_bfcl_multi_turn.py [folder]

``folder`` is what ``fetch_bfcl_multi_turn`` returned, which is asked when there is none; ``mpmath``
has to be installed. Every gold sequence is run.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentkit.episodes import Episode, Turn
from agentkit.evaluation import Benchmark, FinalState, Task
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers import AllOf, Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit_bench.bfcl_multi_turn import fetch_bfcl_multi_turn, load_bfcl_multi_turn


class Clock:
    """Adds up seconds of processor time by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.times: dict[str, int] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.process_time() - start
        self.times[what] = self.times.get(what, 0) + 1

    def show(self) -> None:
        """One line for each, mean in milliseconds."""
        print("| step | times | mean, ms |")
        print("|---|---|---|")
        for what, seconds in self.seconds.items():
            print(f"| {what} | {self.times[what]} | {seconds / self.times[what] * 1e3:.3f} |")


async def play(benchmark: Benchmark, task: Task, clock: Clock) -> bool:
    """Make the gold calls of a task, and judge each user turn."""
    if benchmark.environment is None:
        raise ValueError("the benchmark has no environment")
    with clock("make an environment"):
        world = benchmark.environment(task)
    reference = benchmark.environment(task)
    with clock("bind its tools"):
        world.tools()
    episodes: list[Episode] = []
    passed = True
    for turn in task.turns:
        results, calls = [], []
        for expected in turn.expects:
            for call in expected.calls if isinstance(expected, FinalState) else ():
                with clock("run a call"):
                    value = world.call(call.name, call.arguments)
                at = str(len(calls))
                calls.append(ToolCall(call_id=at, name=call.name, arguments=call.arguments))
                results.append(ToolResult(call_id=at, name=call.name, status="ok", value=value))
        with clock("observe the state"):
            world.state()
        step = Turn(message=AssistantMessage(tool_calls=tuple(calls)), results=tuple(results))
        episode = Episode(episode_id="1", request=turn.request, turns=(step,))
        if turn.expects:
            with clock("judge a user turn"):
                passed &= await judged(world, reference, turn.expects, episode, episodes)
        episodes.append(episode)
    return passed


async def judged(
    world: Environment,
    reference: Environment,
    expects: tuple[object, ...],
    episode: Episode,
    earlier: list[Episode],
) -> bool:
    """Whether a user turn passes."""
    scene = Scene(environment=world, reference=reference, earlier=tuple(earlier))
    return (await AllOf(verifier_for(one, scene) for one in expects).verify(episode)).passed


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder or fetch_bfcl_multi_turn()
    clock = Clock()
    with clock("load the benchmark"):
        benchmark = load_bfcl_multi_turn(folder)
    passed = [await play(benchmark, task, clock) for task in benchmark.tasks]
    print(f"{sum(passed)} of {len(passed)} gold sequences pass\n")
    clock.show()


if __name__ == "__main__":
    asyncio.run(main())
