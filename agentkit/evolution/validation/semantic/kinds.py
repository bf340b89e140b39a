"""Types that a text claims, against those of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.semantic.statements import about

_CLAIM = (
    r"(?:\b(?:as|is|be|give|pass|of type|type:|takes|expects|in form of|als|ist|comme|est|como|es)\s+"
    r"(?:an? |one |the |eine?n? |une? |un[ao]? )?(?:json |plain |single |simple |positive |comma-separated |separated )*|^\(?(?:type: ?)?)"
)
_KINDS: Mapping[str, tuple[re.Pattern[str], frozenset[str]]] = {
    "a list": (
        re.compile(_CLAIM + r"(?:list|array|liste|lista|tableau)\b|(?:数组|列表)(?:形式|格式|传入)|(?:作为|为)(?:一个)?(?:数组|列表)|配列(?:で|として)|リスト(?:で|として)"),
        frozenset({"array", "string"}),
    ),
    "an object": (
        re.compile(_CLAIM + r"(?:object|dictionary|dict|map|objekt|objet|objeto)\b(?! id| name| of)"),
        frozenset({"object"}),
    ),
    "a truth value": (
        re.compile(_CLAIM + r"(?:boolean|bool|true/false|true or false|wahrheitswert|booleen|booleano)\b|布尔|真偽値"),
        frozenset({"boolean"}),
    ),
    "a whole number": (
        re.compile(_CLAIM + r"(?:integer|int|whole number|ganzzahl|ganze zahl|entier|entero|numero entero|nombre entier)\b|整数"),
        frozenset({"integer"}),
    ),
    "a number": (
        re.compile(_CLAIM + r"(?:number|float|decimal|numeric value|zahl|nombre|numero)\b(?! (?:of|and|or|plus)\b)"),
        frozenset({"integer", "number"}),
    ),
    "a text": (
        re.compile(_CLAIM + r"(?:string|text|zeichenkette|chaine|cadena|texto|texte)\b|字符串|文字列"),
        frozenset({"string"}),
    ),
}  # fmt: skip
_SCALAR_TEXT = frozenset({"a list", "a number", "a whole number"})
_DIGITS = re.compile(r"\b(?:string|text|digits?|characters?)\b|字符|文字")


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
    for edit, sentence in change.sentences:
        facts = about(change, edit, sentence)
        if facts is None or not facts.types:
            continue
        claimed = {what for what, (pattern, _) in _KINDS.items() if pattern.search(sentence)}
        wrong = [what for what in claimed if not facts.types & _KINDS[what][1]]
        if "string" in facts.types:
            wrong = [
                what
                for what in wrong
                if what not in _SCALAR_TEXT or not _is_claim_of_type(sentence)
            ]
        if claimed and len(wrong) == len(claimed):
            yield reason(
                "type_contradicted",
                "semantic",
                edit,
                sentence,
                message=f"it calls {facts.path} {sorted(wrong)[0]}; its type is {', '.join(sorted(facts.types))}",
                advice="say what the value means; the schema says its type",
            )


def _is_claim_of_type(sentence: str) -> bool:
    """Whether a text parameter is called an integer or a number in the words of a schema."""
    return re.search(
        r"\b(?:integer|int|float|array|boolean|ganzzahl|entier|entero)\b|整数|数组", sentence
    ) is not None and not _DIGITS.search(sentence)
