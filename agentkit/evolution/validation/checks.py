"""The checks, all in view: what is asked of a change, and in which order it is told."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.validation import (
    contract_checks as contract,
    lexical_checks as lexical,
    sentence_checks as sentences,
    tool_names,
)
from agentkit.evolution.validation.approvals import ValidationPolicy
from agentkit.evolution.validation.report import Check, ProposedChange, ValidationReport
from agentkit.evolution.validation.texts import rules_of

LEXICAL_CHECKS: tuple[Check, ...] = (
    lexical.no_invisible_characters,
    lexical.NO_CONFUSABLES,
    lexical.lengths_kept,
    lexical.NO_ADDRESSES,
    lexical.NO_SECRETS,
    lexical.NO_PRIVATE_DATA,
    lexical.NO_MARKUP,
    lexical.NO_CHAT_MARKERS,
    lexical.NO_ENCODED_TEXT,
    lexical.NO_DIRECTIVES,
    tool_names.no_other_tools,
)
"""Each reads the changed texts alone. That an answer can be read at all, and is about a known
tool, is for whoever reads the proposer's answer."""

STRUCTURAL_CHECKS: tuple[Check, ...] = (
    contract.fields_well_formed,
    contract.something_changed,
    contract.contract_kept,
    contract.parameters_known,
    contract.rules_valid,
    contract.orders_possible,
    contract.first_example_kept,
)
"""Each compares the candidate with the base; none reads the words."""

SEMANTIC_CHECKS: tuple[Check, ...] = (
    sentences.purpose_kept,
    sentences.DEEDS_DECLARED,
    sentences.warnings_kept,
    sentences.values_agree,
    sentences.presence_agrees,
    sentences.types_agree,
    sentences.units_agree,
    sentences.bounds_agree,
    sentences.CLOSED_LISTS_SUPPORTED,
    sentences.NO_INVENTED_PARAMETERS,
    sentences.NO_PROMISES,
    sentences.NO_SELF_PROMOTION,
    lexical.not_copied,
    contract.examples_fit,
    tool_names.no_near_copy,
)
"""Each holds words against schema, rules, effects or the library. None asks a model."""

ALL_CHECKS: tuple[Check, ...] = (*LEXICAL_CHECKS, *STRUCTURAL_CHECKS, *SEMANTIC_CHECKS)
"""Every check of the three layers. Order decides how a report reads, and nothing else."""

_DEFAULT_POLICY = ValidationPolicy()


def validate(
    change: ProposedChange,
    *,
    checks: Iterable[Check] = ALL_CHECKS,
    policy: ValidationPolicy = _DEFAULT_POLICY,
) -> ValidationReport:
    """What stands against a change, and who must still agree to it.

    All checks run, whatever the others say, unless a rule holds a text that is too long to be read.
    They only read; the order in which they stand is the order of the reasons, and decides nothing
    else. A check that raises is a bug, and its exception is handed on. The time that validation
    takes depends on the length of the changed texts, of the sources and of the rules, and not on
    the size of the library once its names are indexed.

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
    if unread := tuple(lexical.rules_readable(change.candidate, rules_of(change.base))):
        return ValidationReport(failed=unread)
    failed = tuple(reason for check in checks for reason in check(change))
    return ValidationReport(failed=failed, needs=policy.needs(change))
