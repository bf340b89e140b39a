from .catalogue import (
    KINDS as KINDS,
    Catalogue as Catalogue,
    Finding as Finding,
    Kind as Kind,
    Severity as Severity,
)
from .checks import (
    CHECKS as CHECKS,
    Checkup as Checkup,
    examine as examine,
)
from .provider_rules import (
    PROVIDER_RULES as PROVIDER_RULES,
    ProviderRule as ProviderRule,
)
