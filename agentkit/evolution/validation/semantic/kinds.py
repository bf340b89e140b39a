"""Types that a text claims, against those of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

_CLAIMS = Phrasebook.shipped_sections("kinds")
_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so. A list in one text, with commas, is called a list."""

_ITEMS = re.compile(
    r"\b(?:each|every|or (?:an? )?(?:float|string|text))\b"
    r"|\b(?:element|item|entr|key)\w* (?:is|are|must)\b"
)
"""Words by which a sentence is about the parts of a value, or about several types."""

_KIND_WORD = re.compile(
    r"list|array|tableau|obje|dict|map|bool|true|wahr|int|whole|ganz|ent[ie]e?r|number|float|decim"
    r"|numer|zahl|nombre|string|text|zeichen|chaine|cadena|数组|列表|配列|リスト|布尔|真偽|整数"
    r"|字符|文字"
)
"""Without one of these no claim of a type is made."""

_NUMERIC = frozenset({"number", "whole number"})
_STRICT = re.compile(
    r"\b(?:integer|int|float|array|boolean|ganzzahl|entier|entero)\b|\u6574\u6570|\u6570\u7ec4"
)
_OF_DIGITS = re.compile(r"\b(?:string|text|digits?|characters?)\b|\u5b57\u7b26|\u6587\u5b57")


def types_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has.

    A text of digits may be called a number (an order number), and a list in one text may be called
    a list where the text says how it is separated.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.people": "How many pay, as a whole number."}
        >>> list(types_agree(rewrite("bill_split", right)))
        []
        >>> wrong = {"parameters.people": "Give a list of names of those who pay."}
        >>> [found.message for found in types_agree(rewrite("bill_split", wrong))]
        ['it calls people a list; its type is integer']
    """
    for edit, sentence, facts in change.statements:
        if facts is None or not facts.types:
            continue
        if not _KIND_WORD.search(sentence) or _ITEMS.search(sentence):
            continue
        claimed = [what for what, phrases in _CLAIMS.items() if phrases.search(sentence)]
        wrong = [what for what in claimed if not facts.types & _TAKEN[what]]
        if "string" in facts.types and not _is_strict(sentence):
            wrong = [what for what in wrong if what not in _NUMERIC]
        if claimed and len(wrong) == len(claimed):
            told = ", ".join(sorted(facts.types))
            yield reason(
                "type_contradicted",
                "semantic",
                edit,
                sentence,
                message=f"it calls {facts.path} a {wrong[0]}; its type is {told}",
                advice="say what the value means; the schema says its type",
            )


def _is_strict(sentence: str) -> bool:
    """Whether a text is called an integer in the words of a schema, and not as a word of digits."""
    return bool(_STRICT.search(sentence)) and not _OF_DIGITS.search(sentence)
