"""What ``ToolManager.insert`` costs in a large library when nothing has to be run.

    python insert.py [REPEATS]        one line of JSON, after a mark

The candidate is text, read and checked against its five children, compared with the tools of its
signature by words alone, and committed to a store in memory. Each insert adds a composite of
another name to the library that the one before it left.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator

import workload

from agentkit import open_store
from agentkit.evolution.insert_outcomes import InsertPolicy
from agentkit.evolution.manager import ToolManager
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool

MARK = "@@RESULT "
TOOLS = 10_000
TYPES = ("string", "number", "integer", "boolean")
CANDIDATE = '''
def quote_{number}(amount: float, rate: float, days: int) -> float:
    """The price of a stay in another currency, with tax and fee, number {number}.

    Args:
        amount: What a day costs.
        rate: Of the other currency.
        days: How long the stay is.
    """
    converted = convert(amount=amount, rate=rate)
    reduced = discount(value=converted, percent={number})
    taxed = tax(value=reduced)
    service = fee(days=days)
    return add(left=taxed, right=service)
'''


def catalogue(count: int) -> Iterator[ToolDefinition]:
    """Tools with one to four parameters of changing types."""
    for number in range(count):
        properties = {
            f"part_{i}": {
                "type": TYPES[(number // 4**i) % 4],
                "description": f"Part {i} of case {number}.",
            }
            for i in range(1 + number % 4)
        }
        yield ToolDefinition.from_schema(
            f"tool_{number}",
            f"Answers question {number} about topic {number % 97} from its parts.",
            {"type": "object", "properties": properties, "required": ["part_0"]},
            result={"type": TYPES[number % 4]},
            effects=Effects(reads=True, writes=False),
        )


def children() -> list[Tool]:
    """The children of the workload, as pure tools."""
    pure = Effects(reads=False, writes=False)
    return [tool(function, effects=pure) for function in workload.CHILDREN.values()]


def main() -> None:
    """Insert one composite after the other."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    policy = InsertPolicy(probes=0)
    manager = ToolManager(open_store("memory:"), tools=children(), policy=policy)
    manager.register([*children(), *catalogue(TOOLS)])
    spent = []
    for number in range(repeats):
        text = CANDIDATE.format(number=number)
        before = time.process_time()
        outcome = manager.insert(text)
        spent.append((time.process_time() - before) * 1e6)
        if type(outcome).__name__ != "Added":
            raise SystemExit(f"not added: {outcome}")
    result = {
        "tools": TOOLS,
        "cpu_us": min(spent),
        "median_us": statistics.median(spent),
        "first_us": spent[0],
    }
    print(MARK + json.dumps(result))


if __name__ == "__main__":
    main()
