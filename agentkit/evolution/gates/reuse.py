"""How often the same held-out tasks have decided: they wear out.

Tasks that decide night after night are learned from after all, through their decisions. A proposer
that varies what nearly passed keeps the luck that it had on these very tasks, until it passes
(Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015, *Science* 349(6248), 636-638). e-LOND does
not cover that: its levels hold for candidates that were made without looking at the tasks.
``docs/gates.md`` has what was measured. Nothing here corrects for it; it counts, so that somebody
may bring fresh tasks in time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from agentkit.evolution.gates.decision import GateReport, GateRules

MARKS = 16
"""How many tasks stand for a set of them."""

ALIKE = 0.5
"""Share of tasks in common from which two sets count as the same."""


def task_marks(tasks: Iterable[str]) -> str:
    """A short text that stands for a set of tasks, whatever their order and number.

    The smallest ``MARKS`` of the tasks' hashes, a random sample that is the same each time (Broder
    1997, "On the resemblance and containment of documents"). So the events of a library can tell
    how much of a set was asked before without keeping all its names.

    Args:
        tasks: Their ids.

    Example:
        >>> task_marks(["t2", "t1"]) == task_marks(["t1", "t2", "t1"])
        True
    """
    hashes = {hashlib.sha256(task.encode("utf-8", "surrogatepass")).hexdigest() for task in tasks}
    return " ".join(sorted(one[:12] for one in hashes)[:MARKS])


def resemblance(marks: str, others: str) -> float:
    """About which share of the tasks of two sets, taken together, is in both.

    Args:
        marks: Of the one set, from ``task_marks``.
        others: Of the other.

    Example:
        >>> resemblance(task_marks(["a", "b", "c"]), task_marks(["b", "c", "d"]))
        0.5
    """
    one, other = set(marks.split()), set(others.split())
    smallest = sorted(one | other)[:MARKS]
    return sum(mark in one and mark in other for mark in smallest) / max(1, len(smallest))


def with_uses(
    report: GateReport, *, tasks: Iterable[str], earlier: Iterable[str], rules: GateRules
) -> GateReport:
    """The report of a comparison, with how often its tasks have decided before.

    The decision stays. From ``rules.most_uses`` on the reason advises fresh tasks.

    Args:
        report: What the comparison says.
        tasks: The ids of its tasks.
        earlier: The marks of the tasks of earlier comparisons, one entry for each.
        rules: The knobs.

    Example:
        >>> report = GateReport(gate="offline", decision="pass", reason="a gain")
        >>> marks = task_marks(["a", "b"])
        >>> worn = with_uses(report, tasks=["a", "b"], earlier=[marks] * 20, rules=GateRules())
        >>> worn.reason
        'a gain; these tasks have decided 20 times before: bring fresh ones'
    """
    marks = task_marks(tasks)
    uses = sum(resemblance(marks, other) >= ALIKE for other in earlier)
    reason = report.reason
    if uses >= rules.most_uses:
        reason += f"; these tasks have decided {uses} times before: bring fresh ones"
    statistics = {**report.statistics, "earlier_uses": uses}
    return replace(report, reason=reason, statistics=statistics, tasks=marks)
