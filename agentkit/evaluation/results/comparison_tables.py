"""A comparison as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.results.comparison import Comparison, GroupComparison
from agentkit.evaluation.results.estimating import FEWEST_DRAWN
from agentkit.evaluation.results.tables import Table
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.results.wording import percent, points, whole

MOST_TASKS = 20
_NAME = 60
_HEADING = 24


def comparison_table(comparison: Comparison) -> Table:
    """Accuracy of both runs by category, with the difference."""
    rows = [_row(shown(group.name, _NAME), group) for group in comparison.categories]
    if len(rows) != 1:
        rows.append(_row("all", comparison.total))
    return Table(
        title="Accuracy on the tasks of both",
        columns=(
            ("category", "left"),
            ("tasks", "right"),
            (shown(comparison.a, _HEADING) or "a", "right"),
            (shown(comparison.b, _HEADING) or "b", "right"),
            ("difference", "right"),
            ("95% interval", "right"),
            ("gained", "right"),
            ("lost", "right"),
            ("p", "right"),
            ("tokens", "right"),
        ),
        rows=tuple(rows),
        note="Difference: in percentage points; its interval is that of a paired bootstrap over "
        f"tasks, below {FEWEST_DRAWN} tasks that of Agresti and Min. p: McNemar's mid-p, for "
        "categories adjusted for their number (Holm). Tokens: of the second run for each of the "
        "first.",
    )


def _row(name: str, group: GroupComparison) -> tuple[str, ...]:
    difference = group.difference
    return (
        name,
        whole(group.tasks),
        percent(group.a),
        percent(group.b),
        points(difference.value),
        f"{points(difference.low)} to {points(difference.high)}",
        whole(len(group.gained)),
        whole(len(group.lost)),
        p_text(group.p_adjusted),
        ratio_text(group.tokens_ratio),
    )


def p_text(p_value: float) -> str:
    """A p-value with as many digits as matter."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def ratio_text(ratio: float | None) -> str:
    """A ratio: ``1.62x``; a dash where there is none."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def setting_table(comparison: Comparison) -> Table:
    """Settings in which the runs differ."""
    return Table(
        title="What differs",
        columns=(
            ("setting", "left"),
            (shown(comparison.a, _HEADING) or "a", "left"),
            (shown(comparison.b, _HEADING) or "b", "left"),
        ),
        rows=tuple(
            (shown(one.name, _NAME), one.a or "(not set)", one.b or "(not set)")
            for one in comparison.differences
        ),
    )


def task_table(comparison: Comparison) -> Table:
    """Ids of the tasks that changed, and of those that only one run has."""
    return Table(
        title="Tasks",
        columns=(("what", "left"), ("tasks", "right"), ("which", "left")),
        rows=tuple(_task_rows(comparison)),
    )


def _task_rows(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    kinds = {
        "gained": comparison.total.gained,
        "lost": comparison.total.lost,
        f"only in {shown(comparison.a, _NAME)}": comparison.only_a,
        f"only in {shown(comparison.b, _NAME)}": comparison.only_b,
    }
    for name, tasks in kinds.items():
        if tasks:
            told = ", ".join(shown(task, _NAME) for task in tasks[:MOST_TASKS])
            more = len(tasks) - MOST_TASKS
            yield name, whole(len(tasks)), f"{told} and {more:,} more" if more > 0 else told


def verdict_line(comparison: Comparison) -> str:
    """The outcome in a sentence."""
    total, difference = comparison.total, comparison.total.difference
    holds_zero = difference.low <= 0 <= difference.high
    a, b = shown(comparison.a, _NAME), shown(comparison.b, _NAME)
    return (
        f"Of {total.tasks:,} tasks that both answered, {a} passes {percent(total.a)} and {b} "
        f"{percent(total.b)}: {points(difference.value)} points. The 95% interval, "
        f"{points(difference.low)} to {points(difference.high)}, "
        f"{'includes' if holds_zero else 'does not include'} zero."
    )
