from .checks import ALL_CHECKS as ALL_CHECKS
from .lexical import LEXICAL_CHECKS as LEXICAL_CHECKS
from .policy import ValidationPolicy as ValidationPolicy
from .report import (
    Check as Check,
    FailedCheck as FailedCheck,
    ProposedChange as ProposedChange,
    ValidationReport as ValidationReport,
)
from .semantic import SEMANTIC_CHECKS as SEMANTIC_CHECKS
from .semantic_judge import ModelSemanticJudge as ModelSemanticJudge
from .structural import STRUCTURAL_CHECKS as STRUCTURAL_CHECKS
