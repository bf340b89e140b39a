"""How many episodes a second a SQLite file takes, gives back and exports, beside one by one.

    python tests/benchmarks/stores/episodes.py [--count 5000] [--size 1000]

Ratios are of one run: everything in it met the same machine (docs/episodes-at-scale.md).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, report

from agentkit import Episode, open_store
from agentkit.episodes import Turn
from agentkit.episodes.files import export_episodes, import_episodes
from agentkit.library import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

BATCH = 256


def episode(number: int, size: int) -> Episode:
    """An episode with a call, its result and a text of a given size."""
    call = ToolCall(call_id="c1", name=f"tool_{number % 20}", arguments={"n": number})
    result = ToolResult(call_id="c1", name=call.name, status="ok", value={"t": 21.5}, text="21.5")
    return Episode(
        episode_id=f"{number:012}",
        request=f"What is the weather? {'x' * size}",
        turns=(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)),),
        output="Warm.",
        session_id=f"s{number // 5}",
    )


def measured(folder: Path, count: int, size: int) -> Iterator[dict[str, Any]]:
    """Keep the same episodes one by one and in batches; read and export them."""
    told = [episode(number, size) for number in range(count)]
    groups = [told[start : start + BATCH] for start in range(0, count, BATCH)]
    one, many = open_store(folder / "one.db"), open_store(folder / "many.db")
    file, every = folder / "episodes.jsonl.gz", EpisodeFilter(oldest_first=True)
    steps: dict[str, Callable[[], object]] = {
        "append, one by one": lambda: [one.append(each) for each in told],
        f"append_many, {BATCH} each": lambda: [many.append_many(group) for group in groups],
        "select": lambda: sum(1 for _ in many.select(every)),
        "export": lambda: export_episodes(file, many.select(every)),
        "import": lambda: sum(1 for _ in import_episodes(file)),
    }
    first = 0.0
    for name, step in steps.items():
        began = time.perf_counter()
        step()
        rate = count / (time.perf_counter() - began)
        first = first or rate
        yield {"step": name, "episodes/s": rate, "times one by one": rate / first}
    one.close()
    many.close()


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--size", type=int, default=1_000, help="extra characters of an episode")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        report(list(measured(Path(place), options.count, options.size)), options)
