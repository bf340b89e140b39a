"""What gates let through, what they hold back, and how long they take to know.

    python tests/benchmarks/bench_gates.py [--rounds 2000] [--json] [--only PART]

* *peeking*: candidates that are not better; how many pass when the gate is asked every ten
  episodes, against a test made for one look (mid-p) that is asked as often;
* *many proposals*: 200 proposals of which 160 are useless, with e-LOND and with a fixed level;
* *canary*: false alarms, sessions until the alarm by harm, and passes by margin;
* *offline*: the error of the mid-p test by the number of tasks that differ.

``--rounds`` is the number of simulations of the first part; the others take a part of it. Numbers
come from a fixed seed. One core, one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentkit.evolution.gate_statistics import (
    Elond,
    log_e_path,
    log_money_path,
)
from agentkit.evolution.gates import (
    ArmScore,
    GateConfig,
    PairedScore,
    blocks,
    one_sided_mid_p,
    shadow_gate,
)

LEVEL = 0.05
DIFFER = 0.2
"""Share of the episodes on which the two definitions differ."""

Row = dict[str, Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def naive_needed(pairs: int) -> list[int]:
    """The fewest wins at which the mid-p test agrees, by pairs that differ; more than all if none."""
    needed, wins = [pairs + 1], 0
    for count in range(1, pairs + 1):
        while wins <= count and one_sided_mid_p(wins, count - wins) > LEVEL:
            wins += 1
        needed.append(wins if wins <= count else pairs + 1)
        wins = min(wins, count)
    return needed


def evidence_table(pairs: int) -> Floats:
    """The logarithm of E by the number of pairs that differ and of wins."""
    table = np.full((pairs + 1, pairs + 1), -np.inf)
    table[0, 0] = 0.0
    for losses in range(pairs + 1):
        path = log_e_path([False] * losses + [True] * (pairs - losses))
        for count, log_e in enumerate(path, start=1):
            if count >= losses:
                table[count, count - losses] = log_e
    return table


def peeking(rounds: int, chance: np.random.Generator) -> list[Row]:
    """False passes by the number of episodes seen, with a look every ten."""
    episodes, horizons = 2_000, (100, 200, 500, 1_000, 2_000)
    table, needed = evidence_table(600), np.array(naive_needed(600))
    pairs = {
        score: [
            PairedScore(task=str(n), control=1 - score, candidate=score) for n in range(episodes)
        ]
        for score in (0.0, 1.0)
    }
    same = [PairedScore(task=str(n), control=1, candidate=1) for n in range(episodes)]
    looks = np.arange(9, episodes, 10)
    naive_at, process_at, gate_passes = [], [], 0
    for _ in range(rounds):
        differ, won = chance.random(episodes) < DIFFER, chance.random(episodes) < 0.5
        count, wins = np.cumsum(differ)[looks], np.cumsum(differ & won)[looks]
        naive_at.append(_first(wins >= needed[count], looks))
        process_at.append(_first(table[count, wins] >= -math.log(LEVEL), looks))
        gate_passes += (
            shadow_gate(
                pairs[float(w)][n] if d else same[n]
                for n, (d, w) in enumerate(zip(differ.tolist(), won.tolist(), strict=True))
            ).decision
            == "pass"
        )
    rows = [
        {
            "episodes": seen,
            "naive": fmean(at < seen for at in naive_at),
            "e_process": fmean(at < seen for at in process_at),
        }
        for seen in horizons
    ]
    rows[-1]["gate_after_every_pair"] = gate_passes / rounds
    return rows


def _first(reached: Bools, looks: NDArray[np.int64]) -> float:
    return float(looks[int(reached.argmax())]) if reached.any() else math.inf


def offline_power(share: float, differ: int) -> float:
    """How likely the mid-p test at this many tasks that differ agrees."""
    return math.fsum(
        math.comb(differ, wins) * share**wins * (1 - share) ** (differ - wins)
        for wins in range(differ + 1)
        if one_sided_mid_p(wins, differ - wins) <= LEVEL
    )


def highest_points(wins: Bools, table: Floats) -> Floats:
    """The highest log E of each row of outcomes, up to where the mirrored alarm rings."""
    counts, won = np.arange(1, wins.shape[1] + 1), np.cumsum(wins, axis=1)
    path, mirrored = table[counts, won], table[counts, counts - won]
    path[:, : GateConfig().min_pairs - 1] = -np.inf
    rung = np.logical_or.accumulate(mirrored >= -math.log(GateConfig().alpha), axis=1)
    path[rung] = -np.inf
    highest: Floats = path.max(axis=1)
    return highest


def promoted(highest: Floats, useful: Bools, level_of: Callable[[Elond], float]) -> tuple[int, int]:
    """Useless and useful promotions, one proposal after the other."""
    state, found = Elond(), [0, 0]
    for log_e, is_useful in zip(highest.tolist(), useful.tolist(), strict=True):
        is_promoted = log_e >= -math.log(level_of(state))
        found[is_useful] += is_promoted
        state = Elond(opened=state.opened + 1, promoted=state.promoted + is_promoted)
    return found[0], found[1]


def many_proposals(rounds: int, chance: np.random.Generator) -> list[Row]:
    """200 proposals in a random order, 40 of them useful, by effect and by pairs that differ."""
    table, rows = evidence_table(400), []
    useful = np.arange(200) < 40
    for share in (0.6, 0.65, 0.7, 0.75, 0.8, 0.9):
        for differ in (50, 100, 200, 400):
            ours, fixed = [], []
            for _ in range(rounds):
                order = chance.permutation(useful)
                odds = np.where(order, share, 0.5)[:, None]
                highest = highest_points(chance.random((200, differ)) < odds, table)
                ours.append(promoted(highest, order, lambda state: state.level(LEVEL)))
                fixed.append(promoted(highest, order, lambda _: LEVEL))
            rows.append(
                {
                    "wins": share,
                    "differ": differ,
                    **_summary("elond", ours),
                    **_summary("fixed", fixed),
                }
            )
    return rows


def _summary(name: str, found: Sequence[tuple[int, int]]) -> Row:
    false = [useless for useless, _ in found]
    return {
        f"{name}_false": fmean(false),
        f"{name}_false_95": float(np.quantile(false, 0.95, method="inverted_cdf")),
        f"{name}_false_share": fmean(bad / max(1, bad + good) for bad, good in found),
        f"{name}_kept": fmean(good for _, good in found) / 40,
    }


def traffic(chance: random.Random, candidate: float, most: int) -> Iterable[ArmScore]:
    """Sessions of which a fifth go to the candidate; the control is right in four of five."""
    served = 0
    while served < most:
        arm, share = ("candidate", candidate) if chance.random() < 0.2 else ("control", 0.8)
        served += arm == "candidate"
        yield ArmScore(session="", arm=arm, score=float(chance.random() < share))  # type: ignore[arg-type]


def naive_alarm(scores: Sequence[ArmScore]) -> bool:
    """The normal test of two shares, made for one look, asked every ten sessions."""
    right, count = {"control": 0.0, "candidate": 0.0}, {"control": 0, "candidate": 0}
    for place, one in enumerate(scores, start=1):
        right[one.arm] += one.score
        count[one.arm] += 1
        if place % 10 or not all(count.values()):
            continue
        share = sum(right.values()) / place
        error = math.sqrt(share * (1 - share) * sum(1 / n for n in count.values()))
        worse = right["control"] / count["control"] - right["candidate"] / count["candidate"]
        if error and worse / error > 1.645:
            return True
    return False


def canary(rounds: int, chance: random.Random) -> list[Row]:
    """Alarms and passes by harm, over 1,000 sessions of the candidate."""
    rows = []
    for harm in (-0.05, 0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        runs, naive = rounds if harm == 0 else max(20, rounds // 4), 0
        passes: dict[str, list[int]] = {}
        for _ in range(runs):
            sessions = list(traffic(chance, 0.8 - harm, 1_000))
            found = list(blocks(sessions))
            served = np.cumsum([len(block.candidate) for block in found])
            for name, sign, bound in (
                ("alarm", -1, 0.0),
                ("alarm_beyond_5", -1, 0.05),
                ("pass_5", 1, -0.05),
                ("pass_10", 1, -0.1),
            ):
                path = log_money_path([sign * block.gain for block in found], bound=bound)
                place = next((n for n, one in enumerate(path) if one >= -math.log(LEVEL)), None)
                if place is not None:
                    passes.setdefault(name, []).append(int(served[place]))
            naive += harm == 0 and naive_alarm(sessions)
        alarms, at_90 = sorted(passes.get("alarm", [])), runs * 9 // 10
        rows.append(
            {
                "harm": harm,
                **{
                    name: len(passes.get(name, [])) / runs
                    for name in ("alarm", "alarm_beyond_5", "pass_5", "pass_10")
                },
                "alarm_median_sessions": alarms[runs // 2] if len(alarms) > runs // 2 else None,
                "alarm_90_sessions": alarms[at_90] if len(alarms) > at_90 else None,
                **({"naive_alarm": naive / runs} if harm == 0 else {}),
            }
        )
    return rows


def offline_errors() -> list[Row]:
    """The exact error of the mid-p test over tasks that differ, from 8 to 200."""
    errors = {n: offline_power(0.5, n) for n in range(8, 201)}
    worst = max(errors, key=lambda n: errors[n])
    return [{"mean": fmean(errors.values()), "worst": errors[worst], "worst_at": worst}]


def measure(rounds: int, only: str) -> dict[str, list[Row]]:
    """The parts, each from a seed of its own."""
    parts: dict[str, Callable[[], list[Row]]] = {
        "peeking": lambda: peeking(rounds, np.random.default_rng(6)),
        "many proposals": lambda: many_proposals(max(4, rounds // 20), np.random.default_rng(6)),
        "canary": lambda: canary(max(20, rounds // 4), random.Random(6)),
        "offline": offline_errors,
    }
    return {name: part() for name, part in parts.items() if only in {"", name}}


def show(rows: Sequence[Row]) -> None:
    """Print a table; a column that only some rows have is empty in the others."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(_cell(row.get(name)) for name in names) + " |")


def _cell(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="one part, such as canary")
    options = parser.parse_args()
    began = time.process_time()
    found = measure(options.rounds, options.only)
    if options.json:
        print(json.dumps({"rounds": options.rounds, **found}, indent=1))
        return
    for name, rows in found.items():
        print(f"\n## {name}\n")
        show(rows)
    print(f"\n{time.process_time() - began:.0f} s of CPU time, {options.rounds} rounds")


if __name__ == "__main__":
    main()
