"""How long the library's synchronisation takes in a step: 1,000 tools over two processes.

Run: ``torchrun --standalone --nproc-per-node 2 tests/benchmarks/library_sync.py [--tools 1000]``
Prints a table and, with ``--out``, writes JSON. Wanted: at most 10 ms a step. With
``--composites 100`` as many of the tools are composites, and all have code.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from agentkit.composites.source import compose
from agentkit.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit_training.cli.processes import joined_ranks
from agentkit_training.distributed.synchronising import synchronise

Decide = Callable[[Library, int], Library]


def definition(number: int, words: str) -> ToolDefinition:
    """A tool of ordinary size: five parameters, each with a sentence."""
    properties = {
        f"parameter_{place}": {"type": "string", "description": f"What is meant by {place}."}
        for place in range(5)
    }
    schema = {"type": "object", "properties": properties, "required": ["parameter_0"]}
    return ToolDefinition.from_schema(f"tool_{number}", f"Do thing {number}. {words}", schema)


def tools(count: int, composites: int) -> Library:
    """Tools without code; or with composites of the last primitive, and code for all."""
    primitives = [definition(number, "") for number in range(count - composites)]
    library = Library(primitives, version=1)
    if not composites:
        return library
    last = library[primitives[-1].name]
    heads = [f"def composite_{number}(word: str) -> list:" for number in range(composites)]
    call = f"{last.name}(parameter_0=word)"
    body = f'"Do it twice."\n    return [{call}, {call}]'
    made = [compose(f"{head}\n    {body}", {last.name: last}) for head in heads]
    return library.with_tools(made).bind({one.name: print for one in primitives})


def same(library: Library, step: int) -> Library:
    """Nothing changes, as in most steps."""
    return library


def reworded(count: int) -> Decide:
    """``count`` tools get another text."""

    def decide(library: Library, step: int) -> Library:
        changed = [definition(number, f"Learned in step {step}.") for number in range(count)]
        return library.with_tools(changed).at_version(library.version + 1)

    return decide


def main() -> None:
    """Measure, print at rank 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=1000)
    parser.add_argument("--composites", type=int, default=0)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    ranks = joined_ranks()
    report = {"failures": {f"tool_{number}": {"argument_mismatch": 3} for number in range(50)}}
    rows = []
    cases: dict[str, Decide] = {
        "nothing changed": same,
        "5 tools reworded": reworded(5),
        "50 tools reworded": reworded(50),
        "all tools reworded": reworded(asked.tools),
    }
    for name, decide in cases.items():
        library = tools(asked.tools, asked.composites)
        library = synchronise(library, {}, lambda _, held=library: held, ranks=ranks)
        taken = []
        for step in range(asked.steps):
            decided = decide(library, step) if ranks.rank == 0 else library
            decided.digest  # noqa: B018 - the Tool Manager has worked it out by then
            ranks.broadcast(None)  # all begin together
            started = time.perf_counter()
            library = synchronise(library, report, lambda _, held=decided: held, ranks=ranks)
            taken.append(1000 * (time.perf_counter() - started))
        rows.append({"case": name, "median_ms": statistics.median(taken), "slowest_ms": max(taken)})
    if ranks.rank == 0:
        print(f"{asked.tools} tools, {ranks.world} processes, {asked.steps} steps")
        for row in rows:
            print(f"{row['case']:20} {row['median_ms']:8.2f} ms {row['slowest_ms']:8.2f} ms")
        if asked.out:
            asked.out.write_text(json.dumps(rows, indent=1) + "\n")
    if ranks.world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
