"""Two systems on the same tasks: which is better, and how sure that is.

What both pass or both fail says nothing about the difference. The tasks on which they differ are
judged by McNemar's exact test with mid-p, and the size of the difference by a paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from agentkit.errors import UsageError
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedOutcome:
    """How two systems did on one task.

    Attributes:
        task: The task. Several outcomes of one task are averaged first.
        first: Score of the first system; 1 or 0 for passed or not.
        second: Score of the second.
    """

    task: str
    first: float
    second: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedComparison:
    """Two systems compared.

    Attributes:
        tasks: How many tasks both attempted.
        only_first: Tasks on which the first did better.
        only_second: Tasks on which the second did better.
        difference: Mean score of the second less that of the first, with its interval.
        p_value: How likely it is that tasks divide so unevenly if neither is better (mid-p).
    """

    tasks: int
    only_first: int
    only_second: int
    difference: Interval
    p_value: float


def mcnemar_mid_p(only_first: int, only_second: int) -> float:
    """The two-sided mid-p value of McNemar's exact test (Fagerland et al. 2013).

    Counts what is as extreme as observed half, what is more extreme in full. Less conservative than
    the exact test, it still keeps the level in practice. Computed with integers and rounded once.

    Args:
        only_first: Tasks that only the first system passed.
        only_second: Tasks that only the second passed.

    Returns:
        The p-value; 1 when the systems never differ.

    Raises:
        UsageError: A count is negative.

    Example:
        >>> round(mcnemar_mid_p(2, 10), 4)
        0.0225
    """
    if min(only_first, only_second) < 0:
        raise UsageError(f"counts of tasks can not be negative: {only_first}, {only_second}")
    differ, fewer = only_first + only_second, min(only_first, only_second)
    more_extreme = 2 * sum(comb(differ, at) for at in range(fewer))
    as_extreme = comb(differ, fewer) if only_first == only_second else 2 * comb(differ, fewer)
    if not differ:
        return 1.0
    return (2 * more_extreme + as_extreme) / (1 << (differ + 1))


def compare_paired(
    outcomes: Iterable[PairedOutcome],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedComparison:
    """Compare two systems on the tasks that both attempted.

    With one 0-or-1 outcome a task the p-value is McNemar's. With scores between, or several
    attempts averaged, it is the sign test on tasks with a difference, which is the same formula.

    Args:
        outcomes: One for each task, or for each pair of attempts at it; at least one.
        level: The level of the interval.
        resamples: How often the bootstrap draws.
        seed: Of its random numbers.

    Raises:
        UsageError: There are no outcomes, or one is not finite.

    Example:
        >>> pairs = [PairedOutcome(task=str(n), first=n % 3 == 0, second=1) for n in range(30)]
        >>> found = compare_paired(pairs)
        >>> found.only_first, found.only_second, round(found.difference.value, 3)
        (0, 20, 0.667)
    """
    differences = [Observation(value=one.second - one.first, task=one.task) for one in outcomes]
    interval = bootstrap_interval(differences, level=level, resamples=resamples, seed=seed)
    totals: dict[str, float] = {}
    for one in differences:
        totals[one.task] = totals.get(one.task, 0.0) + one.value
    only_first = sum(total < 0 for total in totals.values())
    only_second = sum(total > 0 for total in totals.values())
    return PairedComparison(
        tasks=len(totals),
        only_first=only_first,
        only_second=only_second,
        difference=interval,
        p_value=mcnemar_mid_p(only_first, only_second),
    )
