"""Units that a text names, against those that stood there before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.folding import folded
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.shipped import shipped_sections
from agentkit.evolution.validation.texts import Edit, mapping, rules_of

_WORDS = {
    word: (dimension, unit)
    for dimension, lines in shipped_sections("units").items()
    for unit, _, words in (line.partition(": ") for line in lines)
    for word in words.split()
}
"""What each word of a unit measures, and which unit it is."""

_UNSPACED = sorted(
    (word for word in _WORDS if not word.isascii() and len(word) > 1), key=len, reverse=True
)
_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")
_IN = re.compile(
    r"\b(?:in|as|en|als|units?|einheit|unite|unidad)\b|单位|単位|以|で(?:指定|表)|\d\s*$"
)


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.hours": "Length in whole hours; round 90 minutes up to 2 hours."}
        >>> list(units_agree(rewrite("calendar_find_slot", right)))
        []
        >>> wrong = {"parameters.hours": "Length in minutes."}
        >>> [found.message for found in units_agree(rewrite("calendar_find_slot", wrong))]
        ['it says minutes where hours is counted in hours']
    """
    for edit, facts, text in _told(change):
        before = _units(_stated(change, facts))
        for dimension, named in _units(text).items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                yield reason(
                    "unit_contradicted",
                    "semantic",
                    edit,
                    edit.after,
                    message=f"it says {_listed(named)} where {facts.path} "
                    f"is counted in {_listed(stated)}",
                    advice="keep the unit; say how to convert into it when calls need that",
                )


def _listed(units: set[str]) -> str:
    return ", ".join(sorted(units))


def _told(change: ProposedChange) -> Iterator[tuple[Edit, ParameterFacts, str]]:
    """Each changed text about a parameter as a whole, and each new sentence elsewhere."""
    for edit in change.edits:
        if edit.kind == "parameter" and (facts := change.parameters.get(edit.parameter)):
            yield edit, facts, folded(edit.after)
    for edit, sentence, facts in change.statements:
        if edit.kind == "parameter" or facts is None or not _IN.search(sentence):
            continue
        if "_" in facts.path or f"`{facts.path}`" in sentence:  # no word that merely equals a name
            yield edit, facts, sentence.replace(facts.path.casefold(), "")


def _stated(change: ProposedChange, facts: ParameterFacts) -> str:
    words = mapping(change.base.description.parameters).get(facts.path, "")
    units = [
        str(getattr(rule, "unit", ""))
        for rule in rules_of(change.candidate)
        if getattr(rule, "parameter", None) == facts.path
    ]
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(words), name, *units]))


def _units(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [_WORDS[word] for word in _TOKEN.findall(text) if word in _WORDS]
    if not text.isascii():
        for word in _UNSPACED:  # the longest first: ミリ秒 is no 秒
            if word in text:
                named.append(_WORDS[word])
                text = text.replace(word, " ")
        named += [_WORDS[char] for char in text if char in _WORDS]
    for dimension, unit in named:
        found.setdefault(dimension, set()).add(unit)
    return found
