from .measures import (
    Convergence as Convergence,
    convergence as convergence,
    moving_type_token_ratio as moving_type_token_ratio,
    texts_of as texts_of,
    type_token_ratio as type_token_ratio,
    word_distance as word_distance,
)
from .report import (
    LanguageReport as LanguageReport,
    Measures as Measures,
    ToolLanguage as ToolLanguage,
    histories_of as histories_of,
    language_report as language_report,
)
from .words import word_diff as word_diff
