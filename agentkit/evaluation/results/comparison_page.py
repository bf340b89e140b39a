"""A comparison as one HTML file."""

from __future__ import annotations

from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.comparison_tables import (
    comparison_table,
    setting_table,
    task_table,
    verdict_line,
)
from agentkit.evaluation.results.markup import element
from agentkit.evaluation.results.page import page_html, table_html
from agentkit.evaluation.results.plots import difference_bar
from agentkit.evaluation.results.texts import shown

_LEAST_REACH = 0.1


def comparison_html(comparison: Comparison) -> str:
    """A comparison as one self-contained HTML page.

    Args:
        comparison: The comparison.
    """
    title = f"Evaluations {shown(comparison.a, 80)} and {shown(comparison.b, 80)}"
    table = comparison_table(comparison)
    groups = [*comparison.categories, comparison.total][: len(table.rows)]
    reach = max(
        _LEAST_REACH,
        *(abs(end) for one in groups for end in (one.difference.low, one.difference.high)),
    )
    bars = [difference_bar(group.difference, reach) for group in groups]
    scale = f"{-100 * reach:.0f} to {100 * reach:+.0f} points"
    warnings = [element("li", shown(warning)) for warning in comparison.warnings]
    return page_html(
        title,
        (
            element("h1", title),
            element("p", shown(comparison.benchmark), class_="soft"),
            element("p", verdict_line(comparison)),
            element("ul", warnings, class_="notes") if warnings else "",
            table_html(table, heading="h2", extra={scale: bars}, at_end=False, last="all"),
            table_html(setting_table(comparison), heading="h2"),
            table_html(task_table(comparison), heading="h2"),
        ),
    )
