"""The cost gate: tokens and time may grow by a stated part and no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from agentkit.evolution.gates.decision import Decision, GateReport, GateRules, PairedScore
from agentkit.evolution.gates.scores import LARGEST, counted_pairs, held_up
from agentkit.evolution.gates.student import student_spread
from agentkit.metrics.intervals import Observation, bootstrap_interval

Measure = Literal["tokens", "seconds"]


def cost_gate(
    pairs: Iterable[PairedScore],
    *,
    measure: Measure,
    rules: GateRules | None = None,
    once: bool = False,
) -> GateReport:
    """Ask whether the candidate costs at most so much more than the control.

    The question is put to the *excess*, candidate - (1 + growth) control, whose mean is above 0
    just when the mean cost grew by more than ``growth``; so no ratio has to be resampled. Its
    interval is a paired bootstrap over tasks (``bootstrap_interval``), widened at either end to
    Student's where that reaches further: with few tasks the bootstrap takes the spread that it sees
    for the true one and is too sure. Passes when all of it is at or below 0, fails when all is
    above, waits otherwise.

    Both are made for one look. So that the gate may be asked at any time, it looks only when the
    number of tasks is ``rules.least_tasks`` or twice, four times, eight times that, and what it
    once decided stands. The k-th look has the level 1 - alpha / (k (k + 1)); the errors of all
    looks add up to alpha, half of it for either end. No interval knows of what has not happened
    yet: where few tasks carry the costs, the real errors are larger (see ``docs/gates.md``), and
    ``rules.least_tasks`` should be.

    Seconds of a shadow run, made when the machine was free, do not compare with those of the answer
    that it repeats; use those of a replay under equal load.

    Args:
        pairs: Costs, the lower the better, in the order of time; those of one task are averaged.
        measure: What the costs are: ``rules.token_growth`` or ``rules.latency_growth`` is allowed.
        rules: The knobs.
        once: Whether the tasks are a fixed set that is looked at once: all are then used.

    Example:
        >>> pairs = [PairedScore(task=str(n), control=900 + n, candidate=910) for n in range(40)]
        >>> report = cost_gate(pairs, measure="tokens")
        >>> report.decision, round(report.statistics["growth"], 4)
        ('pass', -0.0049)
    """
    rules = rules or GateRules()
    allowed = rules.token_growth if measure == "tokens" else rules.latency_growth
    scores = counted_pairs(pairs)
    tasks = _by_task(scores.counted)
    look = _decide([new - (1 + allowed) * old for old, new in tasks], rules, once=once)
    used = tasks[: look.tasks]
    control = fmean(old for old, _ in used) if used else 0.0
    candidate = fmean(new for _, new in used) if used else 0.0
    grow = f"{measure} grow by"
    reasons = {
        "pass": f"{grow} {allowed:.0%} at most",
        "fail": f"{grow} more than {allowed:.0%}",
        "wait": f"whether {grow} more than {allowed:.0%} is open: bring more tasks",
    }
    report = GateReport(
        gate=f"cost in {measure}",
        decision=look.decision,
        reason=f"{reasons[look.decision]}; from {control:.4g} to {candidate:.4g} in {len(used)}"
        f" tasks, of {len(tasks)}",
        statistics={
            "tasks": len(tasks),
            "used": len(used),
            "control": control,
            "candidate": candidate,
            "growth": candidate / control - 1 if control else 0.0,
            "allowed_growth": allowed,
            "excess_low": look.low,
            "excess_high": look.high,
            "unusable": scores.unusable,
        },
    )
    return held_up(report, scores.problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """What one look at the first so many tasks said; the ends of the interval of the excess."""

    decision: Decision = "wait"
    tasks: int = 0
    low: float = 0.0
    high: float = 0.0


def _decide(excess: Sequence[float], rules: GateRules, *, once: bool) -> _Look:
    """The first look that decides, else the last one."""
    look = _Look()
    for number, tasks in enumerate(_looks(len(excess), rules.least_tasks, once=once), start=1):
        level = 1 - rules.alpha / (1 if once else number * (number + 1))
        low, high = _interval(excess[:tasks], level, rules)
        decision: Decision = "pass" if high <= 0 else "fail" if low > 0 else "wait"
        look = _Look(decision=decision, tasks=tasks, low=low, high=high)
        if decision != "wait":
            break
    return look


def _interval(excess: Sequence[float], level: float, rules: GateRules) -> tuple[float, float]:
    """The ends of the bootstrap's interval or of Student's, whichever is further out."""
    found = bootstrap_interval(
        [Observation(value=one, task=str(place)) for place, one in enumerate(excess)],
        level=level,
        resamples=rules.resamples,
        seed=rules.seed,
        method="percentile",  # BCa, asked for such tails, errs twice as often on skewed costs
    )
    spread = min(student_spread(excess, level=level), LARGEST)  # of one task it is infinite
    return min(found.low, found.value - spread), max(found.high, found.value + spread)


def _looks(tasks: int, least: int, *, once: bool) -> Iterator[int]:
    """How many tasks each look takes."""
    if once and tasks >= least:
        yield tasks
    while not once and least <= tasks:
        yield least
        least *= 2


def _by_task(pairs: Sequence[PairedScore]) -> list[tuple[float, float]]:
    """The mean costs of each task."""
    costs: dict[str, list[PairedScore]] = {}
    for pair in pairs:
        costs.setdefault(pair.task, []).append(pair)
    return [
        (fmean(one.control for one in several), fmean(one.candidate for one in several))
        for several in costs.values()
    ]
