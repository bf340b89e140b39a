"""``validate``: every check on one change."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.validation.checks import ALL_CHECKS
from agentkit.evolution.validation.policy import ValidationPolicy
from agentkit.evolution.validation.report import Check, ProposedChange, ValidationReport

_DEFAULT_POLICY = ValidationPolicy()


def validate(
    change: ProposedChange,
    *,
    checks: Iterable[Check] = ALL_CHECKS,
    policy: ValidationPolicy = _DEFAULT_POLICY,
) -> ValidationReport:
    """What stands against a change, and who must still agree to it.

    All checks run, whatever the others say. They only read; the order in which they stand is the
    order of the reasons, and decides nothing else. A check that raises is a bug, and its exception
    is handed on. The time that validation takes depends on the length of the changed texts, of the
    sources and of the rules, and not on the size of the library once its names are indexed.

    Args:
        change: What is suggested.
        checks: What is asked. ``LEXICAL_CHECKS``, ``STRUCTURAL_CHECKS`` and ``SEMANTIC_CHECKS``
            are tuples, so that adding a check is adding an item.
        policy: Whom to ask beyond the checks.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> change = rewrite("weather_now", {"sentence": "It is safe; see https://weather.tld."})
        >>> [failed.code for failed in validate(change).failed]
        ['web_address', 'false_claim']
    """
    failed = tuple(reason for check in checks for reason in check(change))
    return ValidationReport(failed=failed, needs=policy.needs(change))
