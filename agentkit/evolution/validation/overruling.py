"""Which failed checks a person may overrule, and what an overruling covers."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.validation.report import FailedCheck

OVERRULABLE: frozenset[str] = frozenset(
    {
        # a sentence was read, and held against what the tool says of itself
        "purpose_changed",
        "effect_contradicted",
        "warning_removed",
        "near_copy",
        # a sentence was read, and held against the schema, which stays as it is whatever it says
        "value_contradicted",
        "presence_contradicted",
        "type_contradicted",
        "unit_contradicted",
        "bounds_contradicted",
        # a phrase was found that often says too much
        "unsupported_rule",
        "invented_parameter",
        "false_claim",
        "self_promotion",
        # a word was taken for the name of a tool
        "other_tool",
    }
)
"""Codes of checks that judge wording, and may be wrong about an honest sentence.

No other code may be overruled. What is structural is a fact about the contract. Hidden and
confusable characters, markup, encoded text, secrets, private data, addresses, lengths and copied
text can always be left out or said otherwise at no loss. A directive is what an attack is made of,
and no honest description needs one. An example that does not fit the schema would teach wrong
calls.
"""

OVERRULABLE_OF_ARRIVALS: frozenset[str] = frozenset(
    {
        "invisible_characters",
        "mixed_scripts",
        "confusable_characters",
        "secret",
        "secret_request",
        "chat_markers",
        "encoded_text",
        "directive",
    }
)
"""Codes that a person may overrule of a tool that is imported whole: those of ``IMPORT_CHECKS``.

Nobody here can ask its author for other words. Whoever overrules them could as well register the
tool unexamined; this way the history says what spoke against it, and who read it.
"""


def is_overruled(failed: FailedCheck, overruled: Iterable[FailedCheck]) -> bool:
    """Whether a failed check is one that a person has overruled: the same code on the same words.

    A person overrules what was shown, and no more: the same code on other words stands.

    Args:
        failed: What a check says now.
        overruled: What a person overruled.

    Example:
        >>> said = FailedCheck(
        ...     code="false_claim", layer="semantic", message="", advice="", excerpt="is free"
        ... )
        >>> is_overruled(said, [said])
        True
        >>> from dataclasses import replace
        >>> is_overruled(replace(said, excerpt="is safe"), [said])
        False
    """
    return any((failed.code, failed.excerpt) == (one.code, one.excerpt) for one in overruled)
