"""The offline gate: recorded tasks that nobody learned from, each done with both definitions.

The number of tasks is fixed before anything is looked at, so a plain test does, and it needs fewer
tasks than the e-process. It must not be asked again with more tasks added until it passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from agentkit.errors import UsageError
from agentkit.evolution.gates.decision import (
    MOST_NAMED,
    Decision,
    GateReport,
    GateRules,
    PairedScore,
)
from agentkit.evolution.gates.scores import counted_pairs
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval

NAME = "offline"

_LONGEST_NAME = 200

_ROUNDING = 1e-9
"""Attempts at one task whose scores differ by less in all are equal but for rounding."""


def one_sided_mid_p(wins: int, losses: int) -> float:
    """The one-sided mid-p value of McNemar's exact test: is the candidate better.

    Where neither is better, each task that differs is a win with probability 1/2. Counts results
    with more wins in full, the one at hand half (Fagerland, Lydersen and Laake 2013, *BMC Medical
    Research Methodology* 13:91; ``mcnemar_mid_p`` is two-sided). At a given number of pairs the
    exact level may be a little more than asked for; ``docs/gates.md`` says by how much.

    Args:
        wins: Tasks on which the candidate did better.
        losses: Tasks on which the control did.

    Raises:
        UsageError: A count is negative.

    Example:
        >>> round(one_sided_mid_p(10, 2), 4), one_sided_mid_p(0, 0)
        (0.0112, 0.5)
    """
    if min(wins, losses) < 0:
        raise UsageError(f"counts of tasks can not be negative: {wins}, {losses}")
    ways = [math.comb(wins + losses, more) for more in range(losses + 1)]
    return (2 * sum(ways) - ways[-1]) / (1 << (wins + losses + 1))


def offline_gate(pairs: Iterable[PairedScore], *, rules: GateRules | None = None) -> GateReport:
    """Ask whether the candidate gains on held-out tasks, once.

    Passes with a mean gain above ``rules.least_gain`` and a one-sided mid-p of at most
    ``rules.alpha``. Fails without either: that is no evidence of a gain, and not evidence that
    there is none. With fewer than ``rules.least_pairs`` tasks that differ it waits, since nothing
    could be shown by so few.

    Args:
        pairs: One for each task, or for each attempt at it: those of one task are averaged.
        rules: The knobs.

    Example:
        >>> pairs = [PairedScore(task=str(n), control=n % 2, candidate=1) for n in range(30)]
        >>> report = offline_gate(pairs)
        >>> report.decision, report.statistics["wins"], round(report.statistics["gain"], 2)
        ('pass', 15, 0.5)
    """
    rules = rules or GateRules()
    scores = counted_pairs(pairs)
    gains: dict[str, list[float]] = {}
    for pair in scores.counted:
        gains.setdefault(pair.task, []).append(pair.candidate - pair.control)
    totals = {task: math.fsum(several) for task, several in gains.items()}
    gained = [task for task, total in totals.items() if total > _ROUNDING]
    lost = [task for task, total in totals.items() if total < -_ROUNDING]
    wins, losses = len(gained), len(lost)
    p_value = one_sided_mid_p(wins, losses)
    gain = _gain(scores.counted, rules)
    decision, reason = _decide(wins, losses, p_value, gain.value, rules)
    if scores.unusable:  # the tasks are fixed, so a verdict on a part of them is none
        decision, reason = "wait", scores.problem
    return GateReport(
        gate=NAME,
        decision=decision,
        reason=f"{reason}; {wins} tasks gained and {losses} lost, of {len(gains)}",
        statistics={
            "tasks": len(gains),
            "wins": wins,
            "losses": losses,
            "unusable": scores.unusable,
            "control": _mean([pair.control for pair in scores.counted]),
            "candidate": _mean([pair.candidate for pair in scores.counted]),
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "p_value": p_value,
            "level": rules.alpha,
        },
        gained=_named(gained),
        lost=_named(lost),
    )


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / max(1, len(scores))


def _named(tasks: Sequence[str]) -> tuple[str, ...]:
    """The first names, cut to what an event keeps."""
    return tuple(task[:_LONGEST_NAME] for task in sorted(tasks)[:MOST_NAMED])


def _gain(pairs: tuple[PairedScore, ...], rules: GateRules) -> Interval:
    """The mean gain over tasks; an interval of all gains that scores allow without any task."""
    level = 1 - 2 * rules.alpha
    if not pairs:
        return Interval(value=0.0, low=-1.0, high=1.0, level=level)
    gains = [Observation(value=one.candidate - one.control, task=one.task) for one in pairs]
    return bootstrap_interval(gains, level=level, resamples=rules.resamples, seed=rules.seed)


def _decide(
    wins: int, losses: int, p_value: float, gain: float, rules: GateRules
) -> tuple[Decision, str]:
    if wins + losses < rules.least_pairs:
        return "wait", (
            f"too few tasks differ to show anything, at least {rules.least_pairs} are asked for: "
            "bring more held-out tasks"
        )
    if gain <= rules.least_gain:
        return "fail", f"no gain: {gain:+.3f} where more than {rules.least_gain:g} is asked for"
    if p_value > rules.alpha:
        return "fail", (
            f"no evidence of a gain: {gain:+.3f}, but so uneven a division has p = {p_value:.3g} "
            f"by chance, and {rules.alpha:g} is asked for"
        )
    return "pass", f"a gain of {gain:+.3f} (p = {p_value:.3g})"
