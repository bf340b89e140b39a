"""What a run of a benchmark found: episodes to reports, two reports side by side, pages to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.results.comparison import Comparison, compare
    from agentkit.evaluation.results.comparison_page import comparison_html
    from agentkit.evaluation.results.examples import Example
    from agentkit.evaluation.results.markdown import comparison_markdown, report_markdown
    from agentkit.evaluation.results.page import report_html
    from agentkit.evaluation.results.records import EvaluationReport, GroupReport
    from agentkit.evaluation.results.summary import summarise

__all__ = [
    "Comparison",
    "EvaluationReport",
    "Example",
    "GroupReport",
    "compare",
    "comparison_html",
    "comparison_markdown",
    "report_html",
    "report_markdown",
    "summarise",
]

_MODULES = {
    "Comparison": "agentkit.evaluation.results.comparison",
    "EvaluationReport": "agentkit.evaluation.results.records",
    "Example": "agentkit.evaluation.results.examples",
    "GroupReport": "agentkit.evaluation.results.records",
    "compare": "agentkit.evaluation.results.comparison",
    "comparison_html": "agentkit.evaluation.results.comparison_page",
    "comparison_markdown": "agentkit.evaluation.results.markdown",
    "report_html": "agentkit.evaluation.results.page",
    "report_markdown": "agentkit.evaluation.results.markdown",
    "summarise": "agentkit.evaluation.results.summary",
}

__getattr__ = lazy_door(__name__, _MODULES)
