"""The catalogue doctor: what is wrong with a pile of tools, found without a model."""

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checkup import CHECKS, KINDS, Check, Checkup, examine
from agentkit.evaluation.doctor.finding import (
    Confusion,
    Finding,
    Kind,
    Level,
    Proposal,
    Severity,
)
from agentkit.evaluation.doctor.mends import MENDS, Mend
from agentkit.evaluation.doctor.provider_rules import PROVIDER_RULES, PROVIDERS, ProviderRule
from agentkit.evaluation.doctor.weights import FIELDS, Weight

__all__ = [
    "CHECKS",
    "FIELDS",
    "KINDS",
    "MENDS",
    "PROVIDERS",
    "PROVIDER_RULES",
    "Catalogue",
    "Check",
    "Checkup",
    "Confusion",
    "Finding",
    "Kind",
    "Level",
    "Mend",
    "Proposal",
    "ProviderRule",
    "Severity",
    "Weight",
    "examine",
]
