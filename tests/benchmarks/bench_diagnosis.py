"""What it costs to diagnose an episode of 20 turns, and to count it in a profile.

    python tests/benchmarks/bench_diagnosis.py [--repeat N] [--out FILE]

CPU time of one process, in milliseconds: the median over the repetitions, and the worst of a
hundred (p99). The episodes are made here, so nothing is measured but the rules.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from agentkit.diagnosis import FailureProfile, diagnose
from agentkit.episodes import Episode, Evidence, Turn, Verdict
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.testing import sample_library

TURNS = 20
CALLS = 2
LIBRARY = sample_library()
PASSED = Verdict(passed=True, score=1.0)


def call(turn: int, at: int, **arguments: Any) -> ToolCall:
    """One call, under an id of its own."""
    given = arguments or {"city": "Oslo", "unit": "celsius"}
    return ToolCall(call_id=f"{turn}-{at}", name="weather_now", arguments=given)


def worked(made: ToolCall) -> ToolResult:
    """The result of a call that worked."""
    value = {"city": "Oslo", "degrees": 7.5}
    return ToolResult(call_id=made.call_id, name=made.name, status="ok", value=value, text="7.5")


def refused(made: ToolCall) -> ToolResult:
    """The result of a call whose arguments broke the schema."""
    failure = ToolFailure(
        kind="invalid_arguments",
        rule="missing required argument `city`",
        path="city",
        cause="required",
    )
    return ToolResult(
        call_id=made.call_id, name=made.name, status="failed", text="…", failure=failure
    )


def episode(turn: Callable[[int], Turn], *, last: str = "It is 7.5 degrees.") -> Episode:
    """An episode of 20 turns, the last of which is the answer."""
    turns = [turn(index) for index in range(TURNS - 1)]
    turns.append(Turn(message=AssistantMessage(text=last)))
    return Episode(
        episode_id="e",
        request="How warm is it in Oslo?",
        turns=tuple(turns),
        started_at="2026-11-21T10:00:00+00:00",
    )


def turn_of(index: int, result: Callable[[ToolCall], ToolResult] | None, **given: Any) -> Turn:
    """A turn of two calls, with results or without."""
    calls = tuple(call(index, at, **given) for at in range(CALLS))
    results = tuple(map(result, calls)) if result else ()
    return Turn(message=AssistantMessage(tool_calls=calls), results=results)


def judged() -> Verdict:
    """A verdict that finds one of the two calls of each turn wrong, and the state too."""
    found = [
        Evidence(
            kind="wrong_value",
            message="weather_now: argument 'city': wrong value",
            call_id=f"{index}-0",
            tool="weather_now",
            parameter="city",
            expected=["Paris"],
            actual="Oslo",
        )
        for index in range(TURNS - 1)
    ]
    state = Evidence(kind="state_differs", message="the lamp is off", parameter="lamp")
    return Verdict(passed=False, evidence=(*found, state))


def cases() -> dict[str, tuple[Episode, Verdict | None]]:
    """What is diagnosed, by name."""
    good = episode(lambda index: turn_of(index, worked))
    bad = episode(lambda index: turn_of(index, refused, unit="celsius"))
    open_ = episode(lambda index: turn_of(index, None))
    broken = episode(lambda index: turn_of(index, None, unit="celsius"))
    text = episode(
        lambda index: turn_of(index, worked), last='[weather_now(city="Oslo", unit="celsius")]'
    )
    return {
        "all calls worked, passed": (good, PASSED),
        "all calls worked, 20 findings": (good, judged()),
        "all calls refused, failed": (bad, Verdict(passed=False)),
        "no results: all calls checked here, fit": (open_, None),
        "no results: all calls checked here, broken": (broken, None),
        "a call that stayed text": (text, Verdict(passed=False)),
    }


def milliseconds(work: Callable[[], object], repeat: int) -> dict[str, float]:
    """Median and p99 of the CPU time of some work."""
    work()
    taken = []
    for _ in range(repeat):
        began = time.process_time_ns()
        work()
        taken.append((time.process_time_ns() - began) / 1e6)
    return {"median_ms": median(taken), "p99_ms": quantiles(taken, n=100)[98]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the numbers as JSON")
    options = parser.parse_args()
    measured = {
        name: milliseconds(partial(diagnose, one, LIBRARY, verdict), options.repeat)
        for name, (one, verdict) in cases().items()
    }
    profile = FailureProfile(replica="bench")
    bad, verdict = cases()["all calls refused, failed"]
    found = diagnose(bad, LIBRARY, verdict)
    measured["count one of them in a profile"] = milliseconds(
        lambda: profile.observe(bad, found), options.repeat
    )
    measured["worst tools of a profile of 1,000 tools"] = milliseconds(
        full_profile().worst_tools, max(2, options.repeat // 10)
    )
    print(f"{TURNS} turns, {CALLS} calls each; CPU milliseconds     median      p99")
    for name, numbers in measured.items():
        print(f"  {name:45} {numbers['median_ms']:8.3f} {numbers['p99_ms']:8.3f}")
    if options.out:
        options.out.write_text(json.dumps(measured, indent=1), encoding="utf-8")


def full_profile() -> FailureProfile:
    """A profile of 1,000 tools."""
    profile = FailureProfile(replica="bench")
    library = Library()
    for at in range(1_000):
        made = ToolCall(call_id="1", name=f"tool_{at}")
        turn = Turn(message=AssistantMessage(tool_calls=(made,)))
        one = Episode(episode_id=str(at), request="?", turns=(turn,))
        profile.observe(one, diagnose(one, library, None))
    return profile


if __name__ == "__main__":
    main()
