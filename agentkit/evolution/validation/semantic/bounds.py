"""Limits that a text states in numbers, against those of the schema and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.folding import folded
from agentkit.evolution.validation.numbers import numbers_in, readings_of
from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts

_CLAIM = Phrasebook.shipped("limits")
_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(
    r"[\"'“„«「][^\"'”“»」]{1,40}[\"'”“»」]\s*(?:is|are|means?|=|:|stands|ist|est|es|は|是)(?!\w)"
)
"""What a user may say, explained: *"under 15k" is 15000*."""

_DEFAULT = re.compile(r"default|standard|defaut|defecto|默认|既定|デフォルト")
_COUNTED = re.compile(
    r"[- ]?(?:\w+ )?(?:characters?|letters?|signs|symbols|digits?|words?|items?|entr(?:y|ies)"
    r"|results?|rows?|records?|hits?|matche?s?|elements?|zeichen|buchstaben|worter|eintrage|ergebnisse"
    r"|treffer|caracteres|lettres|mots|resultats|elements|letras|palabras|resultados|elementos)\b"
    r"|\s?(?:个|個)?(?:字符|字|文字|条|件|项|个结果|結果)"
)
_RETURNED = re.compile(
    r"^(?:it |this tool |the (?:tool|answer|result|list) )?(?:also )?"
    r"(?:returns?|gives?|lists?|shows?|yields?|finds?|holds|contains|has|liefert|zeigt|renvoie|affiche|devuelve|muestra)\b[^,;]*$"
)
"""Before a limit on what the tool returns. That is for a judge to hold against what was seen: a
postcondition or the result's schema bears it out, and it can lead no call astray."""

_LIST = re.compile(r"(?<![\w.-])\d{1,9}(?:\s?(?:[/,]|\bor\b|\band\b)\s?\d{1,9}){2,}(?![\w-])")
_LISTED = re.compile(r"\d+")
_EXPLAINS = re.compile(
    r"\b(?:e\.g\.|such as|for example|z\.b\.|par exemple|p\. ?ej\.|por ejemplo|means|like)"
    r"|例如|比如|例:|例えば|たとえば"
)


def bounds_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A limit in words that schema, rules and the text so far do not have.

    Where the schema says something else about that very parameter, the text contradicts it;
    otherwise the limit is one that nothing supports: a rule in words alone, which a model follows
    and nobody can check. With a ``Between`` or ``OneOf`` rule beside it the same sentence passes.
    A limit on characters, items or results that contradicts nothing is left to those who read what
    is new (``ValidationPolicy.new_words``).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(bounds_agree(rewrite("weather_forecast", {"parameters.days": "Between 1 and 7."})))
        []
        >>> wrong = rewrite("weather_forecast", {"parameters.days": "Between 1 and 14 days."})
        >>> [(found.code, found.message) for found in bounds_agree(wrong)]
        [('bounds_contradicted', 'it states the limit 14, which the schema has otherwise for days')]
        >>> more = rewrite("cars_search", {"parameters.max_price": "At least 5,000 euros."})
        >>> [found.code for found in bounds_agree(more)]
        ['unsupported_rule']
    """
    for edit, sentence, facts in change.statements:
        if not _DIGIT.search(sentence):
            continue
        stated = _QUOTED.sub("", sentence)
        told = [
            (number, _is_count(stated, match, at))
            for match in _CLAIM.matches(stated)
            for at, number in enumerate(match.groups(), start=1)
            if number and not _EXPLAINS.search(stated, 0, match.start(at))
        ]
        known = _known_numbers(change, facts, sentence) if told else set()
        is_counted = facts is not None and facts.is_counted
        bounded = facts and (is_counted or facts.minimum is not None or facts.maximum is not None)
        if told and not bounded:
            known |= {number for text in change.sources for number in numbers_in(folded(text))}
        wrong = [
            number
            for number, is_count in told
            if not readings_of(number) & known and (is_counted or not is_count)
        ]
        wrong += _beyond(stated, change, facts)
        if wrong:
            path = facts.path if facts and bounded else ""
            yield reason(
                "bounds_contradicted" if path else "unsupported_rule",
                "semantic",
                edit,
                sentence,
                message=f"it states the limit {wrong[0]}, which "
                + (f"the schema has otherwise for {path}" if path else "nothing else states"),
                advice="propose the limit as a rule with evidence; its sentence is derived from it",
            )


def _is_count(sentence: str, match: re.Match[str], at: int) -> bool:
    """Whether a limit counts characters, items or results, and is none of a value."""
    counts = _COUNTED.match(sentence, match.end(at))
    return counts is not None or _RETURNED.search(sentence, 0, match.start()) is not None


def _beyond(sentence: str, change: ProposedChange, facts: ParameterFacts | None) -> list[str]:
    """Numbers of a list that lie beyond the bounds, or beyond the list that was told before."""
    if facts is None:
        return []
    wrong: list[str] = []
    for match in _LIST.finditer(sentence):
        numbers = _LISTED.findall(match.group())
        known = [number for number in numbers if readings_of(number) & change.known_numbers]
        goes_on = len(known) > 1 and not facts.values
        wrong += [
            number
            for number in numbers
            if not facts.takes(float(number)) or (goes_on and number not in known)
        ]
    return wrong


def _known_numbers(
    change: ProposedChange, facts: ParameterFacts | None, sentence: str
) -> set[float]:
    """Numbers that stand somewhere already; of the one parameter when a sentence is about one.

    A default is no limit, so that it counts in a sentence about defaults alone.
    """
    known = set(change.shown_numbers)
    for one in [facts] if facts else change.parameters.values():
        known |= one.numbers if _DEFAULT.search(sentence) else one.limits
        known |= {bound + step for bound in one.numbers for step in (-1, 1)} if facts else set()
    return known
