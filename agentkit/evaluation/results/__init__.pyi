from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .markdown import (
    comparison_markdown as comparison_markdown,
    report_markdown as report_markdown,
)
from .page import comparison_html as comparison_html, report_html as report_html
from .report import (
    EvaluationReport as EvaluationReport,
    Example as Example,
    GroupReport as GroupReport,
)
from .summary import summarise as summarise
