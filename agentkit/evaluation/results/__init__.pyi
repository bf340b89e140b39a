from .comparison import (
    Comparison as Comparison,
)
from .comparison import (
    compare as compare,
)
from .markdown import (
    comparison_markdown as comparison_markdown,
)
from .markdown import (
    report_markdown as report_markdown,
)
from .page import comparison_html as comparison_html
from .page import report_html as report_html
from .records import (
    EvaluationReport as EvaluationReport,
)
from .records import (
    GroupReport as GroupReport,
)
from .rows import Example as Example
from .summary import summarise as summarise
