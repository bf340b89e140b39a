"""What gates let through, what they hold back, and how long they take to know (docs/gates.md).

    python tests/benchmarks/gates.py [--rounds 2000] [--only PART] [--json FILE]

* *peeking*: candidates that are not better; how many pass when the gate is asked every ten
  episodes, against a test made for one look (mid-p) that is asked as often;
* *many proposals*: 200 proposals of which 160 are useless, with e-LOND and with a fixed level;
* *canary*: false alarms, sessions until the alarm by harm, and passes by margin;
* *offline*: the exact error of the mid-p test by the number of tasks that differ;
* *reuse*: false promotions when the same held-out tasks decide night after night. A *varying*
  proposer keeps most of what nearly passed, and with it the luck that it had on these tasks.

``--rounds`` is the number of simulations of the first part; the others take a part of it. Figures
come from a fixed seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from harness import arguments, report
from numpy.typing import NDArray

from agentkit.evolution.gate_statistics import Elond, log_e_path, log_money_path
from agentkit.evolution.gates import ArmScore, GateConfig, blocks, one_sided_mid_p

LEVEL = 0.05
REACHED = -math.log(LEVEL)
DIFFER = 0.2
"""Share of the episodes or tasks on which the two definitions differ."""

RIGHT, KEPT, NIGHTS = 0.6, 0.8, (1, 5, 10, 20, 40, 60)
"""Share of tasks done right; of which a variation stays as it was; nights after which we look."""

Row = dict[str, Any]
Floats = NDArray[np.float64]
Answers = tuple[bool | None, ...]
"""What a candidate does anew on each task; None where it does what is done now."""


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
    found = np.full((pairs + 1, pairs + 1), -np.inf)
    found[0, 0] = 0.0
    for losses in range(pairs + 1):
        path = log_e_path([False] * losses + [True] * (pairs - losses))
        for count, log_e in enumerate(path, start=1):
            if count >= losses:
                found[count, count - losses] = log_e
    return found


def peeking(rounds: int) -> Iterator[Row]:
    """False passes by the number of episodes seen, with a look every ten."""
    chance, episodes = np.random.default_rng(6), 2_000
    evidence, needed = evidence_table(600), np.array(naive_needed(600))
    looks = np.arange(9, episodes, 10)
    passed: dict[str, list[float]] = {"mid-p": [], "e-process": []}
    for _ in range(rounds):
        differ, won = chance.random(episodes) < DIFFER, chance.random(episodes) < 0.5
        count, wins = np.cumsum(differ)[looks], np.cumsum(differ & won)[looks]
        for name, reached in (
            ("mid-p", wins >= needed[count]),
            ("e-process", evidence[count, wins] >= REACHED),
        ):
            passed[name].append(float(looks[reached.argmax()]) if reached.any() else math.inf)
    for seen in (100, 200, 500, 1_000, 2_000):
        yield {
            "episodes": seen,
            **{name: fmean(at < seen for at in places) for name, places in passed.items()},
        }


def highest_points(wins: NDArray[np.bool_], evidence: Floats) -> Floats:
    """The highest log E of each row of outcomes, up to where the mirrored alarm rings."""
    counts, won = np.arange(1, wins.shape[1] + 1), np.cumsum(wins, axis=1)
    path, mirrored = evidence[counts, won], evidence[counts, counts - won]
    path[:, : GateConfig().min_pairs - 1] = -np.inf
    path[np.logical_or.accumulate(mirrored >= -math.log(GateConfig().alpha), axis=1)] = -np.inf
    highest: Floats = path.max(axis=1)
    return highest


def opened(state: Elond, *, promoted: int = 0) -> Elond:
    """After one more experiment."""
    return Elond(opened=state.opened + 1, promoted=state.promoted + promoted)


def promoted(highest: Floats, useful: Any, level_of: Callable[[Elond], float]) -> tuple[int, int]:
    """Useless and useful promotions, one proposal after the other."""
    state, found = Elond(), [0, 0]
    for log_e, is_useful in zip(highest.tolist(), useful.tolist(), strict=True):
        passes = log_e >= -math.log(level_of(state))
        found[is_useful] += passes
        state = opened(state, promoted=passes)
    return found[0], found[1]


LEVELS: dict[str, Callable[[Elond], float]] = {
    "e-LOND": lambda state: state.level(LEVEL),
    "fixed": lambda _: LEVEL,
}


def many_proposals(rounds: int) -> Iterator[Row]:
    """200 proposals in a random order, 40 of them useful, by effect and by pairs that differ."""
    chance, evidence, useful = np.random.default_rng(6), evidence_table(400), np.arange(200) < 40
    for share in (0.6, 0.65, 0.7, 0.75, 0.8, 0.9):
        for differ in (50, 100, 200, 400):
            found: dict[str, list[tuple[int, int]]] = {name: [] for name in LEVELS}
            for _ in range(max(4, rounds // 20)):
                order = chance.permutation(useful)
                odds = np.where(order, share, 0.5)[:, None]
                highest = highest_points(chance.random((200, differ)) < odds, evidence)
                for name, level in LEVELS.items():
                    found[name].append(promoted(highest, order, level))
            row: Row = {"won": share, "differ": differ}
            for name, pairs in found.items():
                row[f"{name}: useless promoted"] = fmean(bad for bad, _ in pairs)
                row[f"{name}: share"] = fmean(bad / max(1, bad + good) for bad, good in pairs)
                row[f"{name}: useful kept"] = fmean(good for _, good in pairs) / 40
            yield row


def traffic(chance: random.Random, candidate: float, most: int) -> Iterator[ArmScore]:
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


BOUNDS = {"alarm": (-1, 0.0), "pass, margin 5": (1, -0.05), "pass, margin 10": (1, -0.1)}


def canary(rounds: int) -> Iterator[Row]:
    """Alarms and passes by harm, over 1,000 sessions of the candidate."""
    chance, most = random.Random(6), max(20, rounds // 4)
    for harm in (0.0, 0.05, 0.1, 0.2):
        runs, naive = most if harm == 0 else max(20, most // 4), 0
        reached: dict[str, list[int]] = {name: [] for name in BOUNDS}
        for _ in range(runs):
            sessions = list(traffic(chance, 0.8 - harm, 1_000))
            found = list(blocks(sessions))
            served = np.cumsum([len(candidate) for _, candidate in found])
            gains = [fmean(candidate) - fmean(control) for control, candidate in found]
            for name, (sign, bound) in BOUNDS.items():
                path = log_money_path([sign * gain for gain in gains], bound=bound)
                place = next((n for n, one in enumerate(path) if one >= REACHED), None)
                if place is not None:
                    reached[name].append(int(served[place]))
            naive += harm == 0 and naive_alarm(sessions)
        alarms = sorted(reached["alarm"])
        yield {
            "worse by": harm,
            **{name: len(places) / runs for name, places in reached.items()},
            "sessions until half rang": alarms[runs // 2] if len(alarms) > runs // 2 else None,
            "naive alarm": naive / runs if harm == 0 else None,
        }


def offline(_: int) -> Iterator[Row]:
    """The exact error of the mid-p test over tasks that differ, from 8 to 200."""
    errors = {
        n: math.fsum(
            math.comb(n, wins) * 0.5**n
            for wins in range(n + 1)
            if one_sided_mid_p(wins, n - wins) <= LEVEL
        )
        for n in range(8, 201)
    }
    worst = max(errors, key=lambda n: errors[n])
    yield {"mean": fmean(errors.values()), "worst": errors[worst], "worst at": worst}


def reuse(rounds: int) -> Iterator[Row]:
    """False promotions by night; no candidate is better, so that all promotions are false."""
    for tasks in (50, 100, 200):
        for name, level in LEVELS.items():
            for way in ("blind, same tasks", "varying, same tasks", "varying, fresh tasks"):
                chance = random.Random(7)
                histories = [
                    nights(way, tasks, level, chance) for _ in range(max(10, rounds // 10))
                ]
                row: Row = {"tasks": tasks, "level": name, "proposer": way}
                for night in NIGHTS:
                    row[f"night {night}"] = fmean(one[night - 1] for one in histories)
                yield row


def nights(
    way: str, tasks: int, level: Callable[[Elond], float], chance: random.Random
) -> list[int]:
    """False promotions so far after each night, with four candidates a night."""
    state, history = Elond(), []
    now = [chance.random() < RIGHT for _ in range(tasks)]
    nearest: tuple[float, Answers] | None = None
    for _ in range(max(NIGHTS)):
        if "fresh" in way:
            now, nearest = [chance.random() < RIGHT for _ in range(tasks)], None
        for _ in range(4):
            new = candidate(nearest[1] if "varying" in way and nearest else None, tasks, chance)
            pairs = [(one, old) for one, old in zip(new, now, strict=True) if one is not None]
            wins, losses = (
                sum(one > old for one, old in pairs),
                sum(one < old for one, old in pairs),
            )
            if wins + losses < GateConfig().min_pairs:
                continue
            p_value = one_sided_mid_p(wins, losses)
            if p_value <= level(state):
                state, nearest = opened(state, promoted=1), None
                now = [old if one is None else one for one, old in zip(new, now, strict=True)]
            else:
                state = opened(state)
                nearest = min(nearest or (2.0, new), (p_value, new), key=lambda one: one[0])
        history.append(state.promoted)
    return history


def candidate(kept: Answers | None, tasks: int, chance: random.Random) -> Answers:
    """A candidate as good as what there is, which keeps most of another one where that is given."""
    drawn = tuple(
        chance.random() < RIGHT if chance.random() < DIFFER else None for _ in range(tasks)
    )
    if kept is None:
        return drawn
    return tuple(
        old if chance.random() < KEPT else one for old, one in zip(kept, drawn, strict=True)
    )


PARTS = {
    "peeking": peeking,
    "many proposals": many_proposals,
    "canary": canary,
    "offline": offline,
    "reuse": reuse,
}

if __name__ == "__main__":
    parser = arguments(__doc__, rounds=2_000)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    chosen = [options.only] if options.only else list(PARTS)
    report({part: list(PARTS[part](options.rounds)) for part in chosen}, options)
