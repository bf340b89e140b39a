"""How long binding 1,000 tools of code to a library takes when an agent starts.

    python tests/benchmarks/bench_binding.py [--tools N] [--rounds N]

First registration writes all of them to a new file; every later start finds them as they are. CPU
seconds of this process, the median of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from agentkit import Tool, open_store, tool
from agentkit.library import bind_code


def numbered(number: int) -> Tool:
    """A tool in code."""

    def order(item: str, count: int = 1) -> str:
        """Order an item.

        Args:
            item: Its code.
            count: How many.
        """
        return f"{count} {item}"

    return tool(name=f"order_{number}")(order)


def measured(tools: list[Tool], folder: Path) -> tuple[float, float]:
    """CPU seconds of the first registration, and of the start after it."""
    store = open_store(folder / "library.db")
    begun = time.process_time()
    bind_code(store, tools)
    written = time.process_time()
    store.close()
    store = open_store(folder / "library.db")
    reopened = time.process_time()
    library, binding = bind_code(store, tools)
    done = time.process_time()
    store.close()
    assert len(library) == len(tools)
    assert not binding.registered
    return written - begun, done - reopened


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--tools", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    tools = [numbered(at) for at in range(asked.tools)]
    rounds = []
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(measured(tools, Path(folder)))
    first, start = (statistics.median(one) * 1000 for one in zip(*rounds, strict=True))
    print(f"{asked.tools:,} tools: registered in {first:.0f} ms, bound at start in {start:.0f} ms")


if __name__ == "__main__":
    main()
