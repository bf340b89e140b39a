from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .pages import (
    comparison_html as comparison_html,
    comparison_markdown as comparison_markdown,
    report_html as report_html,
    report_markdown as report_markdown,
)
from .report import (
    EvaluationReport as EvaluationReport,
    Example as Example,
    GroupReport as GroupReport,
)
from .summary import summarise as summarise
