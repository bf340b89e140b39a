"""What binding 1,000 tools of code to a library costs when an agent starts (docs/library.md).

    python tests/benchmarks/binding.py [--tools N] [--rounds N]

The first registration writes all of them to a new file; a later start finds them as they are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import arguments, cpu_ms, medians, report

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


def measured(tools: list[Tool]) -> dict[str, float]:
    """CPU milliseconds of the first registration, and of the start after it."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            store = open_store(Path(folder) / "library.db")
            spent.append(cpu_ms(bind_code, store, tools))
            store.close()
    return {"tools": len(tools), "registered, ms": spent[0], "later start, ms": spent[1]}


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--tools", type=int, default=1_000)
    options = parser.parse_args()
    code = [numbered(at) for at in range(options.tools)]
    report([medians([measured(code) for _ in range(options.rounds)])], options)
