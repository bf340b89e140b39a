"""The cost gate: tokens and time may grow by a stated part and no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from agentkit.evolution.gates.decision import Decision, GateReport, GateRules, PairedScore
from agentkit.evolution.gates.scores import counted_pairs, held_up
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval

NAME = "cost"

Measure = Literal["tokens", "seconds"]


def cost_gate(
    pairs: Iterable[PairedScore], *, measure: Measure, rules: GateRules | None = None
) -> GateReport:
    """Ask whether the candidate costs at most so much more than the control.

    The question is put to the *excess*, candidate - (1 + growth) control, whose mean is above 0
    just when the mean cost grew by more than ``growth``; so no ratio has to be resampled. Its
    interval is a paired bootstrap over tasks (``bootstrap_interval``), each end exceeded in about
    ``rules.alpha`` of cases. Passes when the whole interval is at or below 0, fails when the whole
    is above, waits otherwise, and with fewer than ``rules.least_pairs`` tasks.

    Seconds of a shadow run, made when the machine was free, do not compare with those of the answer
    that it repeats; use those of a replay under equal load.

    Args:
        pairs: Costs, the lower the better; those of one task are averaged.
        measure: What the costs are: ``rules.token_growth`` or ``rules.latency_growth`` is allowed.
        rules: The knobs.

    Example:
        >>> pairs = [PairedScore(task=str(n), control=900 + n, candidate=910) for n in range(40)]
        >>> report = cost_gate(pairs, measure="tokens")
        >>> report.decision, round(report.statistics["growth"], 4)
        ('pass', -0.0103)
    """
    rules = rules or GateRules()
    allowed = rules.token_growth if measure == "tokens" else rules.latency_growth
    scores = counted_pairs(pairs)
    tasks = _by_task(scores.counted)
    excess = _excess(scores.counted, allowed, rules)
    decision, words = _decide(excess, allowed, measure)
    if len(tasks) < rules.least_pairs:
        decision, words = "wait", f"{rules.least_pairs} tasks or more are asked for"
    control = fmean(one for one, _ in tasks) if tasks else 0.0
    candidate = fmean(one for _, one in tasks) if tasks else 0.0
    report = GateReport(
        gate=NAME,
        decision=decision,
        reason=f"{words}; from {control:.4g} to {candidate:.4g} {measure} in {len(tasks)} tasks",
        statistics={
            "tasks": len(tasks),
            "control": control,
            "candidate": candidate,
            "growth": candidate / control - 1 if control else 0.0,
            "allowed_growth": allowed,
            "excess": excess.value,
            "excess_low": excess.low,
            "excess_high": excess.high,
            "unusable": scores.unusable,
        },
    )
    return held_up(report, scores.problem)


def _by_task(pairs: Sequence[PairedScore]) -> list[tuple[float, float]]:
    """The mean costs of each task."""
    costs: dict[str, list[PairedScore]] = {}
    for pair in pairs:
        costs.setdefault(pair.task, []).append(pair)
    return [
        (fmean(one.control for one in several), fmean(one.candidate for one in several))
        for several in costs.values()
    ]


def _excess(pairs: Sequence[PairedScore], allowed: float, rules: GateRules) -> Interval:
    if not pairs:
        return Interval(value=0.0, low=0.0, high=0.0)
    over = [
        Observation(value=pair.candidate - (1 + allowed) * pair.control, task=pair.task)
        for pair in pairs
    ]
    level = 1 - 2 * rules.alpha
    return bootstrap_interval(over, level=level, resamples=rules.resamples, seed=rules.seed)


def _decide(excess: Interval, allowed: float, measure: Measure) -> tuple[Decision, str]:
    if excess.high <= 0:
        return "pass", f"{measure} grow by at most {allowed:.0%}"
    if excess.low > 0:
        return "fail", f"{measure} grow by more than {allowed:.0%}"
    return "wait", f"whether {measure} grow by more than {allowed:.0%} is open: bring more tasks"
