"""Which solutions of GSM8K the arithmetic primitives reproduce, and why not the others.

    python tests/benchmarks/bench_gsm8k.py test.jsonl [train.jsonl ...]

The files are upstream's (openai/grade-school-math, MIT).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from agentkit.evaluation import load_gsm8k, replay_solution
from agentkit.testing import primitive_library


def main() -> None:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    library = primitive_library()
    for path in parser.parse_args().files:
        problems = load_gsm8k(path)
        began = time.process_time()
        replays = [replay_solution(problem, library) for problem in problems]
        seconds = time.process_time() - began
        print(f"{path.name}: {len(replays)} problems, {seconds:.2f} s of CPU")
        for outcome, count in Counter(replay.outcome for replay in replays).most_common():
            print(f"  {outcome:15} {count:6} {count / len(replays):7.1%}")
        calls = Counter(call.name for replay in replays for call in replay.calls)
        print(f"  calls           {calls.total():6}  {dict(calls.most_common())}")
        links = sum(replay.links for replay in replays)
        ambiguous = sum(replay.ambiguous for replay in replays)
        print(f"  operands taken from earlier results {links}, of these ambiguous {ambiguous}")


if __name__ == "__main__":
    main()
