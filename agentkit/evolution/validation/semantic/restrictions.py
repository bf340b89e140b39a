"""Conditions of use that nothing but the text states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.semantic.support import share_supported

_RESTRICTION = Phrasebook.shipped("restrictions")
_CLOSED = Phrasebook.shipped("closed")
_ITEMS = re.compile(r"\s*(?:,|/|;|、|\b(?:and|or|und|oder|et|ou|y|o)\b|和|或|と)\s*")
_SAID = Phrasebook.shipped("user_said")
"""A condition about what was said, such as *only when the user names a maker*, restricts nobody."""

_SWITCH = re.compile(r"(?:if|when) (?:it is )?(?:true|false|set|given|omitted|empty|left out)\b")
"""What a value of a parameter does (*if false, only closing prices*) is no restriction."""

_CLAUSE_ENDS = re.compile(r";|,? written\b|,? given as\b|\(")
_KANA = re.compile(r"[\u3041-\u30fa]")
_LEAST_SHARE = 0.34
_MOST_MATCHES = 16


def restrictions_supported(change: ProposedChange) -> Iterator[FailedCheck]:
    """A sentence that narrows who may use the tool, for what, where or when, out of nothing.

    A restriction passes when at least a third of its words stand in the tool's own texts, schema or
    examples: then it says with emphasis what is known. So does one about what the user said. That a
    restriction is *true* can not be seen from words; what is meant to hold belongs into a rule.

    Sentences that keep a tool from being used for something else (*Do not use it for rental cars*)
    pass: they are how confused tools are told apart, and gates measure them.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> known = rewrite("cars_search", {"rule": "It finds only used cars in stock."})
        >>> list(restrictions_supported(known))
        []
        >>> new = rewrite("cars_search", {"rule": "Use it only for customers in Germany."})
        >>> [found.code for found in restrictions_supported(new)]
        ['unsupported_rule']
    """
    for edit, sentence, _ in change.statements:
        for match in islice(_RESTRICTION.matches(sentence), _MOST_MATCHES):
            words = _about(sentence, match)
            if _SWITCH.match(sentence) and edit.parameter:
                continue
            if not _SAID.search(words) and share_supported(change, words) < _LEAST_SHARE:
                yield reason(
                    "unsupported_rule",
                    "semantic",
                    edit,
                    sentence,
                    message="it narrows the use of the tool by what the definition does not have",
                    advice="leave it out, or propose a rule over the parameters with evidence",
                )
                break


def closed_lists_supported(change: ProposedChange) -> Iterator[FailedCheck]:
    """A sentence that says that these values are all there are, where nothing else says so.

    What bears it out: an enum or a rule with values, of the parameter that the text is about or
    that the sentence names, or a list that stands in the tool's words already.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> known = "Only these units exist: celsius, fahrenheit."
        >>> list(closed_lists_supported(rewrite("weather_now", {"parameters.unit": known})))
        []
        >>> new = rewrite("weather_now", {"rule": "Only these cities exist: Paris and Rome."})
        >>> [found.code for found in closed_lists_supported(new)]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        match = _CLOSED.search(sentence)
        if match is None:
            continue
        if facts is not None and facts.values and not _says_one_of_several(match, facts):
            continue
        named = _ITEMS.split(sentence[match.end() :].strip(" .:。"))
        if len(named) > 1 and all(_is_known(item, change) for item in named if item.strip()):
            continue
        yield reason(
            "unsupported_rule",
            "semantic",
            edit,
            sentence,
            message=f"it says that there is nothing else ({match.group()!r:.60}), which no enum "
            "and no rule bears out",
            advice="propose a one_of rule with evidence; its sentence is derived from it",
        )


def _says_one_of_several(match: re.Match[str], facts: ParameterFacts) -> bool:
    """Whether one value is said to be all there is, though enum or rule has more."""
    return match.group().startswith("is the ") and len(facts.values) > 1


def _is_known(item: str, change: ProposedChange) -> bool:
    return item.strip(" .()\"'`") in change.known_folded


def _about(sentence: str, match: re.Match[str]) -> str:
    """What a restriction is to: the words behind it, in Japanese those before it."""
    if _KANA.search(sentence):
        return sentence[: match.start()]
    return _CLAUSE_ENDS.split(sentence[match.end() :], maxsplit=1)[0]
