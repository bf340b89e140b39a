from .private import private_part as private_part
from .report import (
    LearnReport as LearnReport,
    Skipped as Skipped,
    SkipReason as SkipReason,
)
from .rules import LearningRules as LearningRules
from .unmatched import (
    UnmatchedWord as UnmatchedWord,
    unmatched_words as unmatched_words,
)
from .uses import (
    Passed as Passed,
    Use as Use,
    has_passed as has_passed,
    uses_of as uses_of,
)
