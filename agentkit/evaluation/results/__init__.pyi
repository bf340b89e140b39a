from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .comparison_page import comparison_html as comparison_html
from .examples import Example as Example
from .markdown import (
    comparison_markdown as comparison_markdown,
    report_markdown as report_markdown,
)
from .page import report_html as report_html
from .records import (
    EvaluationReport as EvaluationReport,
    GroupReport as GroupReport,
)
from .summary import summarise as summarise
