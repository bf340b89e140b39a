from .pages import (
    comparison_html as comparison_html,
    comparison_markdown as comparison_markdown,
    report_html as report_html,
    report_markdown as report_markdown,
)
from .report import (
    Comparison as Comparison,
    EvaluationReport as EvaluationReport,
    Example as Example,
    GroupReport as GroupReport,
    compare as compare,
)
from .summary import summarise as summarise
