from .approvals import ValidationPolicy as ValidationPolicy
from .checks import (
    ALL_CHECKS as ALL_CHECKS,
    LEXICAL_CHECKS as LEXICAL_CHECKS,
    SEMANTIC_CHECKS as SEMANTIC_CHECKS,
    STRUCTURAL_CHECKS as STRUCTURAL_CHECKS,
    validate as validate,
)
from .report import (
    Check as Check,
    FailedCheck as FailedCheck,
    ProposedChange as ProposedChange,
    ValidationReport as ValidationReport,
)
from .semantic_judge import ModelSemanticJudge as ModelSemanticJudge
