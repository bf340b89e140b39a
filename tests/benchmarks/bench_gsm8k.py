"""Which solutions of GSM8K the arithmetic primitives reproduce, and what composites would save.

    python tests/benchmarks/bench_gsm8k.py test.jsonl [train.jsonl ...] [--mine train.jsonl]

The files are upstream's (openai/grade-school-math, MIT). With ``--mine``, composites are mined from
the solutions in that file.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agentkit.evolution.mining import mine
from agentkit.testing import primitive_library
from agentkit_bench import load_gsm8k, replay_solution
from agentkit_bench.gsm8k import SolutionReplay

LIBRARY = primitive_library()
DEFINITIONS = {tool.name: tool.definition for tool in LIBRARY}


def main() -> None:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--mine", type=Path, metavar="FILE", help="mine composites from this file")
    options = parser.parse_args()
    if options.mine:
        mined(options.mine)
    for path in options.files:
        show(path, replayed(path))


def replayed(path: Path) -> list[SolutionReplay]:
    """The solutions of a file, done with the primitives."""
    return [replay_solution(problem, LIBRARY) for problem in load_gsm8k(path)]


def show(path: Path, replays: Sequence[SolutionReplay]) -> None:
    """What became of the solutions."""
    print(f"{path.name}: {len(replays)} problems")
    for outcome, count in Counter(one.outcome for one in replays).most_common():
        print(f"  {outcome:15} {count:6} {count / len(replays):7.1%}")
    calls = Counter(call.name for one in replays for call in one.calls)
    print(f"  calls           {calls.total():6}  {dict(calls.most_common())}")
    links = sum(one.links for one in replays)
    ambiguous = sum(one.ambiguous for one in replays)
    print(f"  operands taken from earlier results {links}, of these ambiguous {ambiguous}")


def mined(path: Path) -> None:
    """Composites that recur in the reproduced solutions of a file."""
    solutions = [one.trajectory for one in replayed(path) if one.outcome == "reproduced"]
    began = time.process_time()
    result = mine(solutions, DEFINITIONS)
    seconds = time.process_time() - began
    print(
        f"{path.name}: {len(result.composites)} composites from {len(solutions)} solutions in "
        f"{seconds:.1f} s of CPU, {result.calls} calls -> {result.calls_after}"
    )
    for composite in result.composites[:10]:
        print(f"  {composite.name:24} in {composite.support} solutions, saves {composite.gain}")


if __name__ == "__main__":
    main()
