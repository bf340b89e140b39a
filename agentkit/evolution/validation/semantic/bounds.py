"""Limits that a text states in numbers, against those of the schema and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.semantic.statements import (
    NUMBER,
    about,
    numbers_in,
    readings_of,
)

_N = rf"[^\d\s]{{0,3}}\s?({NUMBER})"
_CLAIM = re.compile(
    "|".join(
        (
            rf"\b(?:at least|at most|no more than|not more than|no less than|not less than|no fewer than|up to|max(?:imum|imal|imo|\.)?(?: (?:of|is|value|length|von|de|es|est))*:?|min(?:imum|imal|imo|\.)?(?: (?:of|is|value|length|von|de|es|est))*:?|more than|less than|fewer than|greater than|smaller than|larger than|higher than|lower than|above|below|over|under|exceed\w*|limited to|capped at|restricted to|beyond|not past)\s+{_N}",
            rf"\b(?:between|zwischen|entre|von|from|de)\s+{_N}\s*\S{{0,8}}?\s*(?:and|und|et|y|to|bis|a|up to)\s+{_N}",
            rf"\b(?:mindestens|hochstens|maximal|minimal|bis zu|nicht mehr als|nicht weniger als|uber|unter|mehr als|weniger als|ab)\s+{_N}",
            rf"\b(?:au moins|au plus|au maximum|au minimum|jusqu'a|plus de|moins de|pas plus de|superieur\w* a|inferieur\w* a)\s+{_N}",
            rf"\b(?:al menos|como (?:maximo|minimo)|hasta|mas de|menos de|no mas de|superior\w* a|inferior\w* a|maximo de)\s+{_N}",
            rf"(?:至少|最多|最少|最大|最小|不超过|不得超过|不少于|不低于|不高于|大于|小于|超过|低于|高于|少于|多于|上限(?:为|是)?|下限(?:为|是)?|最大で?|最小で?|最長|最短)\s?(?:值|为|是|は)?\s?{_N}",
            rf"{_N}\s?\S{{0,3}}?(?:以上|以下|以内|未満|まで|より(?:大きい|小さい)|を超え)",
            rf"{_N}\s?(?:到|至|~|〜|～|から)\s?{_N}\s?(?:之间|の間|まで|之內)?",
            rf"(?:>=|<=|≥|≤|>|<)\s?{_N}",
            rf"{_N}\s?(?:or (?:more|less|fewer|above|below|higher|lower)|and (?:above|below|over|up)|oder (?:mehr|weniger)|ou (?:plus|moins)|o (?:mas|menos))\b",
            rf"(?<![\d-]){_N}\s?(?:\u2013|\u2014|\bto\b|\bbis\b)\s?{_N}(?![\d-])",
            rf"\b(?:must|has to|have to|should|only|exactly|nur|genau|muss|doit|debe|solo|exactement)\b[^.\d]{{0,30}}?{_N}",
            rf"\b(?:multiples? of|multiple of|vielfache\w* von|multiples? de|steps of|in steps of|divisible by)\s+{_N}|{_N}\s?の倍数|{_N}\s?的(?:整数)?倍数",
        )
    )
)
_DIGIT = re.compile(r"\d")
_EXPLAINS = re.compile(
    r"\b(?:e\.g\.|such as|for example|z\.b\.|par exemple|p\. ?ej\.|por ejemplo|means|like)\b|例如|比如|例:|例えば|たとえば"
)


def bounds_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A limit in words that schema, rules and the text so far do not have.

    Where the schema says something else about that very parameter, the text contradicts it;
    otherwise the limit is one that nothing supports: a rule in words alone, which a model follows
    and nobody can check. With a ``Between`` or ``OneOf`` rule beside it the same sentence passes.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(bounds_agree(rewrite("weather_forecast", {"parameters.days": "Between 1 and 7."})))
        []
        >>> wrong = rewrite("weather_forecast", {"parameters.days": "Between 1 and 14 days."})
        >>> [(found.code, found.message) for found in bounds_agree(wrong)]
        [('bounds_contradicted', 'it states the limit 14 for days, which the schema has otherwise')]
        >>> more = rewrite("cars_search", {"parameters.max_price": "At least 5,000 euros."})
        >>> [found.code for found in bounds_agree(more)]
        ['unsupported_rule']
    """
    for edit, sentence in change.sentences:
        if not _DIGIT.search(sentence):
            continue
        facts = about(change, edit, sentence)
        told = [
            group
            for match in _CLAIM.finditer(sentence)
            for group in match.groups()
            if group and not _is_example(sentence, match)
        ]
        known = _known_numbers(change, facts) if told else set()
        wrong = [number for number in told if not readings_of(number) & known]
        if wrong:
            contradicted = facts is not None and (
                facts.minimum is not None or facts.maximum is not None
            )
            yield reason(
                "bounds_contradicted" if contradicted else "unsupported_rule",
                "semantic",
                edit,
                sentence,
                message=f"it states the limit {wrong[0]} for {facts.path}, which the schema has otherwise"
                if contradicted and facts
                else f"it states the limit {wrong[0]}, which neither schema nor rules have",
                advice="propose the limit as a rule with evidence; its sentence is derived from it",
            )


def _is_example(sentence: str, match: re.Match[str]) -> bool:
    return _EXPLAINS.search(sentence, 0, match.start()) is not None


def _known_numbers(change: ProposedChange, facts: ParameterFacts | None) -> set[float]:
    """Numbers that stand somewhere already; of the one parameter when a sentence is about one."""
    known = numbers_in(change.known_folded)
    for one in [facts] if facts else change.parameters.values():
        known |= one.numbers
        known |= {bound + step for bound in one.numbers for step in (-1, 1)} if facts else set()
    return known
