"""How soon held-out tasks wear out when they decide night after night.

No candidate is better than another here: whatever is promoted is promoted falsely, and what its
held-out tasks showed as a gain is none. Each night some candidates are compared on the same tasks
as the nights before. A *blind* proposer draws each one anew. A *varying* one begins with the
candidate that nearly passed and keeps most of it, as a model does that is told what failed; with
what it keeps goes the luck that it had on these very tasks.

    python tests/benchmarks/bench_reuse.py
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from agentkit.evolution.gate_statistics import Elond
from agentkit.evolution.gates import one_sided_mid_p

RIGHT, DIFFER, KEPT = 0.6, 0.2, 0.8
"""Share of tasks done right; on which a candidate differs; of which a variation stays as it was."""

NIGHTS = (1, 5, 10, 20, 40, 60)
"""After which the table looks."""

LEAST_PAIRS = 8

Answers = tuple[bool | None, ...]
"""What a candidate does anew on each task; None where it does what is done now."""

Level = Callable[[Elond], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How the nights go.

    Attributes:
        varies: Whether the proposer varies what nearly passed.
        fresh: Whether each night has tasks of its own.
    """

    varies: bool = False
    fresh: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """After a night: false promotions so far, and the gain that they showed on their tasks."""

    promotions: int
    gain: float


def nights(way: Way, *, tasks: int, each: int, level: Level, chance: random.Random) -> list[Shown]:
    """One history of 60 nights."""
    state, shown, history = Elond(), 0.0, []
    now = _drawn(tasks, chance)
    nearest: tuple[float, Answers] | None = None
    for _ in range(max(NIGHTS)):
        if way.fresh:
            now, nearest = _drawn(tasks, chance), None
        for _ in range(each):
            new = _candidate(nearest[1] if way.varies and nearest else None, tasks, chance)
            wins, losses = _differences(now, new)
            if wins + losses < LEAST_PAIRS:
                continue
            p_value = one_sided_mid_p(wins, losses)
            if p_value <= level(state):
                state, nearest = state.open().promote(), None
                shown += (wins - losses) / tasks
                now = [old if one is None else one for one, old in zip(new, now, strict=True)]
            else:
                state = state.open()
                nearest = min(nearest or (2.0, new), (p_value, new), key=lambda one: one[0])
        history.append(Shown(promotions=state.promoted, gain=shown))
    return history


def _drawn(tasks: int, chance: random.Random) -> list[bool]:
    return [chance.random() < RIGHT for _ in range(tasks)]


def _candidate(kept: Answers | None, tasks: int, chance: random.Random) -> Answers:
    """A candidate that is as good as what there is: where it differs, it is as often right."""
    drawn = tuple(
        chance.random() < RIGHT if chance.random() < DIFFER else None for _ in range(tasks)
    )
    if kept is None:
        return drawn
    return tuple(
        old if chance.random() < KEPT else one for old, one in zip(kept, drawn, strict=True)
    )


def _differences(now: Sequence[bool], new: Answers) -> tuple[int, int]:
    pairs = [(one, old) for one, old in zip(new, now, strict=True) if one is not None]
    return sum(one > old for one, old in pairs), sum(one < old for one, old in pairs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--each", type=int, default=4, help="candidates a night")
    asked = parser.parse_args()
    levels: dict[str, Level] = {"e-LOND": lambda state: state.level(0.05), ".05": lambda _: 0.05}
    ways = {
        "blind, same tasks": Way(),
        "varying, same tasks": Way(varies=True),
        "varying, fresh tasks": Way(varies=True, fresh=True),
    }
    print("| tasks | level | proposer | " + " | ".join(map(str, NIGHTS)) + " |")
    print("|" + "---|" * (3 + len(NIGHTS)))
    for tasks in (50, 100, 200):
        for called, level in levels.items():
            for name, way in ways.items():
                chance = random.Random(7)
                histories = [
                    nights(way, tasks=tasks, each=asked.each, level=level, chance=chance)
                    for _ in range(asked.rounds)
                ]
                cells = [_cell([history[night - 1] for history in histories]) for night in NIGHTS]
                print(f"| {tasks} | {called} | {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{time.process_time():.0f} s of CPU time, {asked.rounds} rounds")


def _cell(found: Sequence[Shown]) -> str:
    promotions = fmean(one.promotions for one in found)
    return f"{promotions:.2f} ({100 * fmean(one.gain for one in found):+.1f})"


if __name__ == "__main__":
    main()
