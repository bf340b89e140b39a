from .catalogue import Catalogue as Catalogue
from .checks import (
    CHECKS as CHECKS,
    Check as Check,
    Checkup as Checkup,
    examine as examine,
)
from .findings import (
    KINDS as KINDS,
    Finding as Finding,
    Kind as Kind,
    Severity as Severity,
)
from .provider_rules import (
    PROVIDER_RULES as PROVIDER_RULES,
    PROVIDERS as PROVIDERS,
    ProviderRule as ProviderRule,
)
