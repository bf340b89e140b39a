from .catalogue import Catalogue as Catalogue
from .checks import CHECKS as CHECKS, Check as Check
from .checkup import Checkup as Checkup, examine as examine
from .findings import (
    KINDS as KINDS,
    Finding as Finding,
    Kind as Kind,
    Level as Level,
    Proposal as Proposal,
    Severity as Severity,
)
from .fixes import FIXES as FIXES, Fix as Fix
from .provider_rules import (
    PROVIDER_RULES as PROVIDER_RULES,
    PROVIDERS as PROVIDERS,
    ProviderRule as ProviderRule,
)
