"""What an evaluation costs an item beyond the model.

    python tests/benchmarks/bench_evaluation.py [--bfcl FOLDER] [--rounds 9] [--out FILE]

A model that answers at once is asked every task of a benchmark; what is left is the runner's own
cost: staging the tools, the agent's run, verdict, diagnosis, and keeping the episode. Benchmarks:

* *one call*: 200 questions made here, each with three tools and one gold call, which the model
  makes (*right*) or gets wrong in one argument (*wrong*); no tool is run;
* *two turns in a world*: 50 conversations of two user turns, in each of which a tool is run and the
  state compared with that of a twin of the world;
* *BFCL simple_python* and *multiple*, first 200 questions each, with ``--bfcl``: a folder that holds
  the package's data, gold answers given.

Stores: *memory* and *SQLite*, a new file for each round. Figures are CPU milliseconds of the
process, threads included, for one item (one user turn in a world): the median over rounds and,
after the stroke, the best one. The reports of ``agentkit.evaluation.results`` are not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from agentkit import Tool, ToolDefinition, __version__, open_store
from agentkit.evaluation import AllowedCalls, Benchmark, FinalState, GoldCall, Task, UserTurn
from agentkit.evaluation.runner import evaluate
from agentkit.messages import AssistantMessage, JsonObject, ToolCall
from agentkit.metrics import AllowedCall
from agentkit.models.base import ModelRequest
from agentkit.testing import FunctionModel
from agentkit_bench.bfcl import load_bfcl

TARGET = 3.0
ITEMS = 200


def definition(name: str) -> ToolDefinition:
    """A tool that takes a room, a state and perhaps how long."""
    properties = {
        "room": {"type": "string", "description": "The room."},
        "state": {"type": "string", "enum": ["on", "off"], "description": "What to do."},
        "minutes": {"type": "integer", "description": "For how long.", "default": 60},
    }
    return ToolDefinition.from_schema(
        name,
        f"Switch the {name.removeprefix('set_')} of a room on or off.",
        {"type": "object", "properties": properties, "required": ["room", "state"]},
    )


LAMP, FAN, HEATING = map(definition, ("set_lamp", "set_fan", "set_heating"))


class House:
    """Lamps and fans that remember."""

    def __init__(self, task: Task) -> None:
        self._on: dict[str, bool] = {}

    def _set(self, kind: str) -> Callable[..., str]:
        def switch(room: str, state: str, minutes: int = 60) -> str:
            self._on[f"{kind} {room}"] = state == "on"
            return f"{kind} {room} {state} for {minutes} minutes"

        return switch

    def tools(self) -> Sequence[Tool]:
        """A lamp tool and a fan tool."""
        return [
            Tool(definition=LAMP, function=self._set("lamp")),
            Tool(definition=FAN, function=self._set("fan")),
        ]

    def state(self) -> JsonObject:
        """What is on."""
        return dict(self._on)


def one_call() -> Benchmark:
    """Questions that one call answers."""
    tasks = tuple(
        Task(
            task_id=str(at),
            category="simple",
            request=f"Lamp in room {at}, please.",
            offered=("set_lamp", "set_fan", "set_heating"),
            expects=(
                AllowedCalls(
                    calls=(
                        AllowedCall(
                            name="set_lamp",
                            allowed={"room": [str(at)], "state": ["on"], "minutes": [60, ""]},
                        ),
                    )
                ),
            ),
        )
        for at in range(ITEMS)
    )
    return Benchmark(name="one call", tasks=tasks, definitions=(LAMP, FAN, HEATING))


def two_turns() -> Benchmark:
    """Conversations of two user turns in a world."""

    def lit(tool: str, room: int) -> tuple[FinalState, ...]:
        arguments = {"room": str(room), "state": "on"}
        return (FinalState(calls=(GoldCall(name=tool, arguments=arguments),)),)

    tasks = tuple(
        Task(
            task_id=str(at),
            category="talk",
            request=f"Lamp in room {at}, please.",
            offered=("set_lamp", "set_fan"),
            expects=lit("set_lamp", at),
            follow_ups=(
                UserTurn(request=f"Fan in room {at}, please.", expects=lit("set_fan", at)),
            ),
        )
        for at in range(ITEMS // 4)
    )
    return Benchmark(name="two turns", tasks=tasks, definitions=(LAMP, FAN), environment=House)


def switching(*, state: str = "on") -> FunctionModel:
    """A model that does what the last message asks for, and then says so."""

    def answer(request: ModelRequest) -> AssistantMessage:
        asked = request.messages[-1].text
        if not asked.endswith(", please."):
            return AssistantMessage(text="Done.")
        kind, _, _, room, _ = asked.replace(",", "").split()
        arguments = {"room": room, "state": state}
        call = ToolCall(call_id="1", name=f"set_{kind.lower()}", arguments=arguments)
        return AssistantMessage(tool_calls=(call,))

    return FunctionModel(answer, name="instant")


def bfcl(whole: Benchmark, category: str) -> tuple[Benchmark, FunctionModel]:
    """The first questions of a category, and a model that knows their gold answers."""
    tasks = tuple(task for task in whole.tasks if task.category == category)[:ITEMS]
    said = {task.request: _gold_message(task) for task in tasks}

    def answer(request: ModelRequest) -> AssistantMessage:
        return said[request.messages[-1].text]

    kept = Benchmark(name=whole.name, tasks=tasks, definitions=whole.definitions)
    return kept, FunctionModel(answer, name="instant")


def _gold_message(task: Task) -> AssistantMessage:
    """The first allowed value of each argument that must be given."""
    calls = tuple(
        ToolCall(
            call_id=str(at),
            name=gold.name,
            arguments={
                name: values[0] for name, values in gold.allowed.items() if "" not in values
            },
        )
        for at, gold in enumerate(task.gold)
    )
    return AssistantMessage(tool_calls=calls)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A benchmark and who answers it."""

    name: str
    benchmark: Benchmark
    model: FunctionModel

    @property
    def items(self) -> int:
        """User turns."""
        return sum(len(task.turns) for task in self.benchmark.tasks)


class Cost(NamedTuple):
    """CPU milliseconds an item."""

    median: float
    best: float


def cost(case: Case, *, on_disk: bool, rounds: int) -> Cost:
    """What an item costs beyond the model, which takes no time worth telling."""
    taken = []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(f"sqlite:///{folder}/episodes.db" if on_disk else "memory:")
            started = time.process_time()
            outcome = asyncio.run(
                evaluate(case.benchmark, model=case.model, store=store, run="bench")
            )
            taken.append((time.process_time() - started) / case.items * 1000)
            assert outcome.finished == len(case.benchmark.tasks)
            store.close()
        case.model.requests.clear()
    return Cost(median=median(taken[1:]), best=min(taken[1:]))  # the first round loads modules


def cases(folder: Path | None) -> list[Case]:
    """What is measured."""
    found = [
        Case(name="one call, right", benchmark=one_call(), model=switching()),
        Case(name="one call, wrong", benchmark=one_call(), model=switching(state="off")),
        Case(name="two turns in a world", benchmark=two_turns(), model=switching()),
    ]
    if folder is None:
        return found
    whole = load_bfcl(folder)
    for category in ("simple_python", "multiple"):
        benchmark, model = bfcl(whole, category)
        found.append(Case(name=f"BFCL {category}", benchmark=benchmark, model=model))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bfcl", type=Path, help="folder with BFCL's data")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    rows = {
        case.name: {
            store: cost(case, on_disk=store == "SQLite", rounds=options.rounds)
            for store in ("memory", "SQLite")
        }
        for case in cases(options.bfcl)
    }
    print("| CPU ms an item | memory | SQLite |\n|---|---:|---:|")
    for name, found in rows.items():
        cells = (f"{one.median:.2f} / {one.best:.2f}" for one in found.values())
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\ntarget: {TARGET} ms an item; load average {os.getloadavg()[0]:.1f}")
    if options.out:
        record = {
            "agentkit": __version__,
            "cpu_ms_an_item": {
                case: {store: one._asdict() for store, one in found.items()}
                for case, found in rows.items()
            },
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
