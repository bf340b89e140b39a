from .depth import (
    Parser as Parser,
    SpacyParser as SpacyParser,
    StanzaParser as StanzaParser,
)
from .differences import (
    DiffPart as DiffPart,
    word_diff as word_diff,
)
from .histories import histories_of as histories_of
from .measures import Measures as Measures
from .records import (
    LanguageReport as LanguageReport,
    ToolLanguage as ToolLanguage,
)
from .report import language_report as language_report
from .trends import (
    Convergence as Convergence,
    convergence as convergence,
)
