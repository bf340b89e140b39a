from .checks import ALL_CHECKS as ALL_CHECKS
from .lexical import LEXICAL_CHECKS as LEXICAL_CHECKS
from .policy import ValidationPolicy as ValidationPolicy
from .report import (
    Check as Check,
)
from .report import (
    FailedCheck as FailedCheck,
)
from .report import (
    ProposedChange as ProposedChange,
)
from .report import (
    ValidationReport as ValidationReport,
)
from .semantic import SEMANTIC_CHECKS as SEMANTIC_CHECKS
from .semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .structural import STRUCTURAL_CHECKS as STRUCTURAL_CHECKS
