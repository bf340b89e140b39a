"""Which words of a sentence the definition bears out."""

from __future__ import annotations

from agentkit.evolution.validation.report import ProposedChange
from agentkit.retrieval.words import terms

_COMMON = frozenset(
    terms(
        """
        user customer client person caller somebody anyone ask asked asking request requested query call
        called calling tool function use used using need needed want wanted give given giving get take make
        value values parameter parameters argument field result results answer output input only not no never
        always must should may might one two first last new same other each every all any both either when
        if while where after before until once only just also already still again then than more most less
        valid exact exactly correct right known unknown explicit explicitly clear clearly available existing
        exist found find look provide provided pass set name named id ids text word words number numbers
        case cases example format form full short complete single several sure please fit match matching
        purpose intended meant kind type thing way something nothing information details data list item
        about around with without within per via do does done be been being have has had it its that this
        current real actual specific particular certain different such like as at on in of for to by from
        nutzer kunde anfrage wert werte nur nicht wenn fur und oder der die das den dem ein eine einen
        utilisateur client demande valeur seulement pas si pour et ou le la les un une des du de
        usuario cliente consulta valor solo no si para y o el la los las un una de del
        """
    )
)


def said_terms(words: str) -> frozenset[str]:
    """The terms of a text without numbers and without words that fit any tool."""
    return frozenset(term for term in terms(words) if term not in _COMMON and not term.isdigit())


def share_supported(change: ProposedChange, words: str) -> float:
    """How much of what ``words`` say the tool says too, from 0 to 1; 1 when they say nothing."""
    said = said_terms(words)
    return len(said & change.vocabulary) / len(said) if said else 1.0
