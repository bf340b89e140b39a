"""How many calls a second the metrics score on one core.

    python tests/benchmarks/bench_metrics.py [--rounds 40] [--out FILE]

Each row scores batches of predicted against gold calls; a batch of 8 against 8 counts as 8 calls.
*All* is what evaluation and training pay for an answer: ToolDNA's seven metrics with the three
rewards, ToolACE-R's overlap, and BFCL's allowed values, with the calls read once for the first two
(``comparable_calls``). *All, gold ready* is the same where many answers are compared with one gold
answer, which is then prepared only once (``GoldCalls``). The cases are

* *right*: the calls are the gold calls, in another order;
* *one argument wrong*: each call differs from its gold call in one argument;
* *all wrong*: eight calls of one tool whose texts, numbers and lists all differ, so that each of
  the 64 pairs is graded and nothing can be skipped;
* *one call*: a single call against a single gold call, one argument wrong.

Times are CPU times of this process with one thread; figures are the median over rounds and, after
the stroke, the best round: on a machine that others use at the same time, the median tells more of
them than of the code.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from agentkit import ToolDefinition, __version__
from agentkit.messages import ToolCall
from agentkit.metrics import (
    AllowedCall,
    CallLike,
    GoldCalls,
    call_overlap,
    comparable_calls,
    match_allowed_values,
    reward_r1,
    reward_r2,
    reward_r3,
    tooldna_metrics,
)

TARGET = 5_000
CITIES = ("Bergen", "Aker", "Moss", "Lima", "Oslo", "Turin", "Cardiff", "Ulm")

SEARCH = ToolDefinition.from_schema(
    "search_hotels",
    "Hotels in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "wishes": {"type": "string"},
            "guests": {"type": "integer"},
            "check_in": {"type": "string", "format": "date"},
            "amenities": {"type": "array", "items": {"type": "string"}},
            "currency": {"type": "string", "enum": ["EUR", "USD", "GBP"], "default": "EUR"},
        },
        "required": ["city", "guests"],
    },
)
KNOWN = {SEARCH.name: SEARCH}


def call_of(place: int, *, wishes: str = "quiet room", guests: int = 0) -> ToolCall:
    """One of eight calls."""
    return ToolCall(
        call_id=str(place),
        name=SEARCH.name,
        arguments={
            "city": CITIES[place],
            "wishes": f"{wishes} near {CITIES[place - 1]}",
            "guests": guests or place + 1,
            "check_in": f"2026-05-{place + 10}",
            "amenities": ["pool", CITIES[place]],
        },
    )


def strange(place: int) -> ToolCall:
    """A call that has nothing in common with any of the eight."""
    arguments = {
        "city": f"Port {chr(65 + place)}astle",
        "wishes": f"sauna and {chr(75 + place)}itchen, no stairs",
        "guests": 20 + place,
        "check_in": f"2027-01-{place + 10}",
        "amenities": [f"gym {place}"],
    }
    return ToolCall(call_id=str(place), name=SEARCH.name, arguments=arguments)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Predicted and gold calls of one answer."""

    name: str
    calls: Sequence[ToolCall]
    gold: Sequence[ToolCall]

    @property
    def allowed(self) -> list[AllowedCall]:
        """The gold calls as lists of allowed values."""
        return [
            AllowedCall(
                name=call.name,
                allowed={name: [value] for name, value in call.arguments.items()},
            )
            for call in self.gold
        ]


def cases() -> list[Case]:
    """What is scored."""
    gold = [call_of(place) for place in range(8)]
    nearly = [call_of(place, guests=place + 2) for place in reversed(range(8))]
    return [
        Case(name="8 x 8, right", calls=gold[::-1], gold=gold),
        Case(name="8 x 8, one argument wrong", calls=nearly, gold=gold),
        Case(name="8 x 8, all wrong", calls=[strange(place) for place in range(8)], gold=gold),
        Case(name="one call", calls=nearly[:1], gold=gold[-1:]),
    ]


def tooldna(calls: Sequence[CallLike], gold: Sequence[CallLike]) -> None:
    """ToolDNA's metrics and rewards."""
    metrics = tooldna_metrics(calls, gold, KNOWN)
    reward_r1(metrics), reward_r2(metrics), reward_r3(metrics)


class Rate(NamedTuple):
    """Calls a second of CPU time."""

    median: float
    best: float


class Stretch:
    """Some work that is repeated for about ``seconds`` at a time."""

    def __init__(self, work: Callable[[], Any], calls: int, *, seconds: float = 0.02) -> None:
        self._work = work
        work()
        started = time.process_time()
        work()
        self._repeats = max(1, int(seconds / max(time.process_time() - started, 1e-6)))
        self._calls = calls * self._repeats
        self._rates: list[float] = []

    def measure(self) -> None:
        """Do the work once more."""
        started = time.process_time()
        for _ in range(self._repeats):
            self._work()
        self._rates.append(self._calls / (time.process_time() - started))

    @property
    def rate(self) -> Rate:
        """What was measured."""
        return Rate(median=median(self._rates), best=max(self._rates))


def works(case: Case) -> dict[str, Stretch]:
    """What is measured of one case, by name."""
    allowed = case.allowed
    gold, matcher = comparable_calls(case.gold, KNOWN), GoldCalls(allowed, [SEARCH])

    def everything() -> None:
        calls, wanted = comparable_calls(case.calls, KNOWN), comparable_calls(case.gold, KNOWN)
        tooldna(calls, wanted)
        call_overlap(calls, wanted, KNOWN)
        match_allowed_values(case.calls, allowed, [SEARCH])

    def gold_ready() -> None:
        calls = comparable_calls(case.calls, KNOWN)
        tooldna(calls, gold)
        call_overlap(calls, gold, KNOWN)
        matcher.match(case.calls)

    found: dict[str, Callable[[], Any]] = {
        "ToolDNA": lambda: tooldna(case.calls, case.gold),
        "overlap": lambda: call_overlap(case.calls, case.gold, KNOWN),
        "allowed values": lambda: match_allowed_values(case.calls, allowed, [SEARCH]),
        "all": everything,
        "all, gold ready": gold_ready,
    }
    return {name: Stretch(work, len(case.calls)) for name, work in found.items()}


def measured(rounds: int) -> dict[str, dict[str, Rate]]:
    """The rates by case and work; all are measured in turns, so that a busy minute hits all."""
    stretches = {case.name: works(case) for case in cases()}
    for _ in range(rounds):
        for row in stretches.values():
            for stretch in row.values():
                stretch.measure()
    return {
        case: {name: stretch.rate for name, stretch in row.items()}
        for case, row in stretches.items()
    }


def shown(found: Rate) -> str:
    """A cell of the table."""
    return f"{found.median:,.0f} / {found.best:,.0f}"


def table(rows: dict[str, dict[str, Rate]]) -> str:
    """A Markdown table, in calls a second."""
    names = list(next(iter(rows.values())))
    lines = ["| calls a second | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for case, rates in rows.items():
        lines.append(f"| {case} | " + " | ".join(map(shown, rates.values())) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args()
    rows = measured(arguments.rounds)
    print(table(rows))
    load = os.getloadavg()[0]
    print(f"\ntarget: {TARGET:,} calls a second for all together; load average {load:.1f}")
    if arguments.out:
        record = {
            "agentkit": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "calls_per_second": {
                case: {name: found._asdict() for name, found in rates.items()}
                for case, rates in rows.items()
            },
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
