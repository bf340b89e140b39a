"""Values that a text names, against those that the schema and the rules allow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.folding import folded, stands_in
from agentkit.evolution.validation.numbers import numbers_in
from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.semantic.support import said_terms
from agentkit.evolution.validation.texts import Edit

_DEMAND = Phrasebook.shipped("demands")
_QUOTED = re.compile(
    r"(?<![=\w])[`\"'\u00ab\u2039\u201e](?=\S)([^`\"'\u00bb\u203a\u201e\n]{1,40}?)"
    r"(?<=\S)[`\"'\u00bb\u203a](?!\w)|[\u300c\u300e]([^\u300d\u300f]{1,40})[\u300d\u300f]"
)
_NOT = re.compile(
    r"\b(?:not|never|no|nicht|kein\w*|statt|pas|jamais|nunca|instead of|rather than|without)\b"
    r"|不|ない|勿|别"
)
_ITEM = re.compile(
    r"\s*(?:,|/|\||;|、|\uff0c|\b(?:or|and|oder|und|ou|et|o|y)\b|或者?|和|または|と)\s*"
)
_LIST_START = re.compile(
    r"[:\uff1a]|\b(?:one of|must be|either|muss|doit etre|debe ser)\b|必须是?|可以是"
)
_PARENTHESES = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_BARE = re.compile(r"[^\s`\"'().]+$")
_EXCLUSIVE = Phrasebook.shipped("exclusive")
_EXPLAINS = Phrasebook.shipped("explains")


def values_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that tells a model to give a value which enum or rules refuse.

    What counts is a value in quotation marks or back-ticks, an item of a list that also holds
    values of the enum, and a number, in a sentence that demands or lists values. Case is ignored:
    prose may write *Celsius*.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.unit": "Unit of the answer: `celsius` or `fahrenheit`."}
        >>> list(values_agree(rewrite("weather_now", right)))
        []
        >>> wrong = {"parameters.unit": "Unit; one of celsius, fahrenheit or kelvin."}
        >>> [found.message for found in values_agree(rewrite("weather_now", wrong))]
        ["it names the value 'kelvin', which unit does not take"]
    """
    for edit, sentence, facts in change.statements:
        if facts and facts.values:
            yield from _foreign_values(edit, sentence, facts, change)


def _foreign_values(
    edit: Edit, sentence: str, facts: ParameterFacts, change: ProposedChange
) -> Iterator[FailedCheck]:
    taken = {_spoken(str(value)) for value in facts.values}
    own = {_spoken(part) for part in (*change.parameters, change.base.name)}
    told = [*_listed(sentence, taken), *(_quoted(sentence) if _DEMAND.search(sentence) else ())]
    for value in told:
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            yield _contradicted(edit, sentence, value, facts)
            return
    if facts.numbers and _DEMAND.search(sentence) and not _EXPLAINS.search(sentence):
        foreign = numbers_in(sentence) - facts.numbers - change.known_numbers
        if foreign and not _NOT.search(sentence):
            yield _contradicted(edit, sentence, f"{min(foreign):g}", facts)


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


def _quoted(sentence: str) -> list[str]:
    if _NOT.search(sentence):
        return []
    return [found for match in _QUOTED.finditer(sentence) for found in match.groups() if found]


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_LIST_START.split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _ITEM.split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            for item in items:
                if _BARE.match(item) and len(item) < 30 and (said_terms(item) or item.isdigit()):
                    yield item


def _contradicted(edit: Edit, sentence: str, value: str, facts: ParameterFacts) -> FailedCheck:
    listed = ", ".join(str(one) for one in facts.values[:8])
    return reason(
        "value_contradicted",
        "semantic",
        edit,
        sentence,
        message=f"it names the value {value!r:.60}, which {facts.path} does not take",
        advice=f"name values that it takes: {listed}",
    )


def values_left_open(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that leaves one value of an enum where the schema and the rules leave several.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> told = {"parameters.unit": "Give fahrenheit only when it was asked for."}
        >>> list(values_left_open(rewrite("weather_now", told)))
        []
        >>> narrow = {"parameters.unit": "Always fahrenheit."}
        >>> [found.code for found in values_left_open(rewrite("weather_now", narrow))]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        if not facts or len(facts.values) < 2 or _EXPLAINS.search(sentence):
            continue
        named = [value for value in facts.values if stands_in(folded(str(value)), sentence)]
        if len(named) == 1 and _EXCLUSIVE.search(sentence):
            yield reason(
                "unsupported_rule",
                "semantic",
                edit,
                sentence,
                message=f"it leaves only {named[0]!r} of the values of {facts.path}",
                advice="say when which value is right, or propose a one_of rule with evidence",
            )
