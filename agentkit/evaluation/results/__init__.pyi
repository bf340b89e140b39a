from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .markdown import (
    comparison_markdown as comparison_markdown,
    report_markdown as report_markdown,
)
from .page import comparison_html as comparison_html, report_html as report_html
from .records import (
    EvaluationReport as EvaluationReport,
    GroupReport as GroupReport,
)
from .rows import Example as Example
from .summary import summarise as summarise
