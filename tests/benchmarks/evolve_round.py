"""What a round of ``agentkit evolve`` over 1,000 episodes costs, without a model (docs/evolution.md).

    python tests/benchmarks/evolve_round.py [--episodes N] [--stored N] [--tools N] [--earlier N]

A shop with twelve tools is lived: some calls are refused, some conversations look up and then act
on what they found. The round reads the store, learns from refusals, mines composites and examples,
and writes what comes of it, in a process of its own.

With ``--stored`` so many episodes were lived before, and read by earlier rounds: the round is an
incremental one. A full round over a million episodes would take gigabytes, so the cursor that it
would have left is written here. Of more than twelve tools to order with, one in thirty refuses.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness import arguments, report

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.evolution.proposal import lasting_digest
from agentkit.library import Store
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.definition import Effects

MAIN = "from agentkit.cli.main import main; main()"
KINDS = 6
BATCH = 10_000


def shop(kinds: int) -> Iterator[ToolDefinition]:
    """Look-ups of an item by its name, and orders of so many for a term in months."""
    for kind in range(kinds):
        yield ToolDefinition.from_schema(
            f"find_{kind}",
            f"Items of kind {kind} by name.",
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            effects=Effects.of(["reads"]),
        )
        yield ToolDefinition.from_schema(
            f"order_{kind}",
            f"Order an item of kind {kind}.",
            {
                "properties": {"code": {"type": "string"}, "months": {"type": "integer"}},
                "required": ["code", "months"],
            },
            effects=Effects.of(["reads"]),
        )


def is_strict(kind: int, kinds: int) -> bool:
    """Whether a tool refuses what it does not take."""
    return kind % (30 if kinds > KINDS else 3) == 0


def lived(number: int, kinds: int) -> Episode:
    """One customer: a look-up, an order that may be refused, an answer."""
    kind = number % kinds
    refused = is_strict(kind, kinds) and (kinds <= KINDS or number % 7 < 3)
    name, code = f"item {number}", f"C-{number:07}"
    months = 10 + number % 20 if refused else (12, 24, 36)[number % 3]
    look = ToolCall(call_id="1", name=f"find_{kind}", arguments={"name": name})
    order = ToolCall(call_id="2", name=f"order_{kind}", arguments={"code": code, "months": months})
    rule = f"months must be one of 12, 24, 36, got {months}"
    failure = ToolFailure(kind="retry_requested", rule=rule)
    found = ToolResult(call_id="1", name=look.name, status="ok", value=[{"code": code}])
    done = (
        ToolResult(call_id="2", name=order.name, status="failed", failure=failure)
        if refused
        else ToolResult(call_id="2", name=order.name, status="ok", value=f"ordered {code}")
    )
    turns = (
        Turn(message=AssistantMessage(tool_calls=(look,)), results=(found,)),
        Turn(message=AssistantMessage(tool_calls=(order,)), results=(done,)),
        Turn(message=AssistantMessage(text="Refused." if refused else f"Ordered {code}.")),
    )
    return Episode(
        episode_id=f"{number:024x}",
        request=f"Please order {name} of kind {kind} for {months} months",
        turns=turns,
        output=turns[-1].message.text,
        stop_reason="finished",
        verdict=Verdict(passed=not refused, verifier="bench"),
    )


def measured(fresh: int, stored: int, kinds: int, earlier: int = 0) -> dict[str, object]:
    """Live the episodes, and make a round over the last ones in a process of its own.

    Rounds over as many before it teach some tools examples, so that their definitions change.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.db"
        url = f"sqlite:///{path}"
        with closing(open_store(url)) as store:
            ToolManager(store).register(list(shop(kinds)), reason="a shop")
            live(store, range(1 if stored else 0), kinds)
        words = ["evolve", "--store", url, "--answers", f"sqlite:///{folder}/absent.db"]
        command = [sys.executable, "-c", MAIN, *words]
        if stored:
            subprocess.run(command, check=True, capture_output=True)
        with closing(open_store(url)) as store:
            live(store, range(1, stored), kinds)
            if stored:
                pass_over(path.with_name("library.db.evolved"), url, stored, kinds)
            for _ in range(earlier):
                live(store, range(stored, stored + fresh), kinds)
                subprocess.run(command, check=True, capture_output=True)
                stored += fresh
            live(store, range(stored, stored + fresh), kinds)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True)
        wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "new episodes": fresh,
        "stored before": stored,
        "tools": 2 * kinds,
        "CPU s, process included": used.ru_utime
        + used.ru_stime
        - before.ru_utime
        - before.ru_stime,
        "wall s": wall,
        "peak MB": used.ru_maxrss / 1024,
    }


def live(store: Store, numbers: range, kinds: int) -> None:
    """Live some episodes."""
    for at in range(0, len(numbers), BATCH):
        store.append_many([lived(number, kinds) for number in numbers[at : at + BATCH]])


def pass_over(path: Path, url: str, stored: int, kinds: int) -> None:
    """Say in the file of the cursor that rounds have read what is stored."""
    cursor = json.loads(path.read_text())
    cursor["newest"][url] = f"{stored - 1:024x}"
    orders = {f"order_{kind}" for kind in range(kinds) if is_strict(kind, kinds)}
    cursor["troubled"] = sorted(orders)
    tools = (one for one in shop(kinds) if one.name in orders)
    cursor["tools"] |= {one.name: lasting_digest(one)[:16] for one in tools}
    path.write_text(json.dumps(cursor))


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--stored", type=int, default=0)
    parser.add_argument("--tools", type=int, default=2 * KINDS)
    parser.add_argument("--earlier", type=int, default=0, help="rounds before the measured one")
    options = parser.parse_args()
    report(
        [measured(options.episodes, options.stored, options.tools // 2, options.earlier)], options
    )
