from .depth import (
    Parser as Parser,
)
from .depth import (
    SpacyParser as SpacyParser,
)
from .depth import (
    StanzaParser as StanzaParser,
)
from .differences import (
    DiffPart as DiffPart,
)
from .differences import (
    word_diff as word_diff,
)
from .histories import histories_of as histories_of
from .measures import Measures as Measures
from .records import (
    LanguageReport as LanguageReport,
)
from .records import (
    ToolLanguage as ToolLanguage,
)
from .report import language_report as language_report
from .trends import (
    Convergence as Convergence,
)
from .trends import (
    convergence as convergence,
)
