from .private import private_part as private_part
from .report import (
    LearnReport as LearnReport,
)
from .report import (
    Skipped as Skipped,
)
from .report import (
    SkipReason as SkipReason,
)
from .rules import LearningRules as LearningRules
from .unmatched import (
    UnmatchedWord as UnmatchedWord,
)
from .unmatched import (
    unmatched_words as unmatched_words,
)
from .uses import (
    Passed as Passed,
)
from .uses import (
    Use as Use,
)
from .uses import (
    has_passed as has_passed,
)
from .uses import (
    uses_of as uses_of,
)
