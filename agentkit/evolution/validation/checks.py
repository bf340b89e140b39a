"""The checks, all in view: what is asked of a change, and in which order it is told."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.validation.approvals import ValidationPolicy
from agentkit.evolution.validation.character_checks import (
    growth_bounded,
    lengths_kept,
    no_confusables,
    no_invisible_characters,
    no_mixed_scripts,
)
from agentkit.evolution.validation.contract_checks import (
    contract_kept,
    effects_kept,
    examples_fit,
    fields_well_formed,
    first_example_kept,
    identity_kept,
    orders_possible,
    parameters_known,
    result_kept,
    rules_valid,
    something_changed,
)
from agentkit.evolution.validation.pattern_checks import (
    NO_ADDRESSES,
    NO_CHAT_MARKERS,
    NO_DIRECTIVES,
    NO_ENCODED_TEXT,
    NO_MARKUP,
    NO_PRIVATE_DATA,
    NO_SECRETS,
    not_copied,
)
from agentkit.evolution.validation.report import Check, ProposedChange, ValidationReport
from agentkit.evolution.validation.sentence_checks import (
    CLOSED_LISTS_SUPPORTED,
    DEEDS_DECLARED,
    NO_INVENTED_PARAMETERS,
    NO_PROMISES,
    NO_SELF_PROMOTION,
    RESTRICTIONS_SUPPORTED,
    bounds_agree,
    presence_agrees,
    purpose_kept,
    types_agree,
    units_agree,
    values_agree,
    values_left_open,
    warnings_kept,
)
from agentkit.evolution.validation.tool_names import no_near_copy, no_other_tools

LEXICAL_CHECKS: tuple[Check, ...] = (
    no_invisible_characters,
    no_mixed_scripts,
    no_confusables,
    lengths_kept,
    growth_bounded,
    NO_ADDRESSES,
    NO_SECRETS,
    NO_PRIVATE_DATA,
    NO_MARKUP,
    NO_CHAT_MARKERS,
    NO_ENCODED_TEXT,
    NO_DIRECTIVES,
    no_other_tools,
)
"""Each reads the changed texts alone. That an answer can be read at all, and is about a known
tool, is for whoever reads the proposer's answer."""

STRUCTURAL_CHECKS: tuple[Check, ...] = (
    fields_well_formed,
    something_changed,
    identity_kept,
    contract_kept,
    result_kept,
    effects_kept,
    parameters_known,
    rules_valid,
    orders_possible,
    first_example_kept,
)
"""Each compares the candidate with the base; none reads the words."""

SEMANTIC_CHECKS: tuple[Check, ...] = (
    purpose_kept,
    DEEDS_DECLARED,
    warnings_kept,
    values_agree,
    values_left_open,
    presence_agrees,
    types_agree,
    units_agree,
    bounds_agree,
    RESTRICTIONS_SUPPORTED,
    CLOSED_LISTS_SUPPORTED,
    NO_INVENTED_PARAMETERS,
    NO_PROMISES,
    NO_SELF_PROMOTION,
    not_copied,
    examples_fit,
    no_near_copy,
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
