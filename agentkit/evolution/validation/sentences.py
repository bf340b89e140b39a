"""What new sentences state of parameters, held against schema and rules.

A sentence may be read wrongly, so that these are doubts: whoever must agree is told, and calls are
held to the schema whatever a text says. Patterns stand in ``phrases/sentences.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any, TypeAlias

from agentkit.evolution.validation.report import FailedCheck, ProposedChange, failed
from agentkit.evolution.validation.texts import (
    folded,
    mapping,
    matches,
    numbers_in,
    pattern,
    patterns,
    readings_of,
    rules_of,
    sections,
    sequence,
    stands_in,
)
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.schema import for_same_value, parts_at

_LIMITS = (
    *("minimum", "exclusiveMinimum", "exclusive_minimum", "multipleOf", "multiple_of"),
    *("maximum", "exclusiveMaximum", "exclusive_maximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)
"""How schemas and rules call bounds."""

_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。\uff01\uff1f\uff1b])|\n+")
_QUOTED = re.compile(
    r"(?<![=\w])[`\"'\u00ab\u2039\u201e](?=\S)([^`\"'\u00bb\u203a\u201e\n]{1,40}?)"
    r"(?<=\S)[`\"'\u00bb\u203a](?!\w)|[\u300c\u300e]([^\u300d\u300f]{1,40})[\u300d\u300f]"
)
_PARENTHESES = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_BARE = re.compile(r"[^\s`\"'().]{1,29}$")
_MOST_MATCHES = 200

_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer", "string"}),
    "number": frozenset({"integer", "number", "string"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so: texts hold lists with commas, and order numbers."""


def sentences_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """Values, presence, types and limits of a parameter that schema and rules have otherwise.

    Looked at are the sentences that the base does not have, in the text of a parameter or where
    they name one alone. A limit where schema and rules have none is for whoever must agree.
    """
    schema = change.base.known_signature.parameters
    names = [*mapping(schema.get("properties")), *mapping(change.base.description.parameters)]
    own = frozenset(map(_spoken, map(str, (*names, change.base.name))))
    words = "\n".join(one.text for one in change.texts if one.kind != "example")
    facts_of = cache(partial(_facts, change, numbers_in(folded(words))))
    for edit in change.edits:
        for part in _END.split("" if edit.kind in {"example", "tag", "rule"} else edit.after):
            sentence = folded(part).strip()
            if not sentence or sentence in change.known_folded:
                continue
            path = edit.parameter or _named(sentence, names)
            facts = facts_of(path) if path else None
            if facts is None:
                continue
            presence = _presence(sentence, facts) if edit.parameter else None
            value, limit = _foreign_value(sentence, facts, own), _limit(sentence, facts)
            for code, said in filter(None, (value, presence, _type(sentence, facts), limit)):
                yield failed(code, field=edit.field, excerpt=sentence, path=path, **said)


def _named(sentence: str, names: Iterable[Any]) -> str:
    """The one parameter that a sentence names; empty for none or several."""
    named = {str(one) for one in names if stands_in(str(one).casefold(), sentence)}
    return named.pop() if len(named) == 1 else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Facts:
    """What the contract and the candidate's rules say of a parameter.

    Attributes:
        types: JSON types that it takes; empty when nothing is said.
        values: What the enum and the rules allow; empty when they say nothing.
        numbers: Every number that schema, rules and the base's words state.
        limits: Those that bound it.
        is_required: Whether a call must give it; None where that cannot be said in a sentence.
    """

    types: frozenset[str]
    values: tuple[Any, ...]
    numbers: frozenset[float]
    limits: frozenset[float]
    is_required: bool | None


def _facts(change: ProposedChange, known: set[float], path: str) -> _Facts | None:
    """What is known of a parameter; None for one that the schema does not have."""
    schema = change.base.known_signature.parameters
    parts = _same(schema, parts_at(schema, path))
    rules = [one for one in rules_of(change.candidate) if getattr(one, "parameter", 0) == path]
    kinds = (one for part in parts for one in sequence(part.get("type")) or (part.get("type"),))
    values = [one for part in parts for one in sequence(part.get("enum"))]
    values += [part["const"] for part in parts if "const" in part]
    values += [one for rule in rules for one in sequence(getattr(rule, "values", ()))]
    limits = _numbers([part.get(word) for part in parts for word in _LIMITS])
    limits |= _numbers([getattr(rule, word, None) for rule in rules for word in _LIMITS])
    defaults = [one.get("default") for one in parts]
    above, _, name = path.rpartition(".")
    holders = _same(schema, parts_at(schema, above) if above else [schema])
    is_required = any(name in sequence(one.get("required")) for one in holders)
    is_ruled = any(path in getattr(rule, "others", ()) for rule in rules_of(change.candidate))
    is_open = path.endswith("[]") or (is_ruled and not is_required)
    facts = _Facts(
        types=frozenset(one for one in kinds if isinstance(one, str)),
        values=tuple(values),
        numbers=limits | _numbers([*values, *defaults]) | known,
        limits=limits,
        is_required=None if is_open else is_required,
    )
    return facts if parts else None


def _same(schema: JsonObject, parts: Iterable[Any]) -> list[JsonObject]:
    kinds = ("allOf", "anyOf", "oneOf")
    return [one for part in parts for one in for_same_value(part, schema, *kinds)]


def _numbers(values: Iterable[Any]) -> frozenset[float]:
    """The finite numbers among values; those too large for a float are left out."""
    return frozenset(
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    )


_Found: TypeAlias = tuple[str, dict[str, str]]
"""A code, and what its message names."""


def _says(section: str) -> re.Pattern[str]:
    return pattern("sentences", section)


def _foreign_value(sentence: str, facts: _Facts, own: frozenset[str]) -> _Found | None:
    """A value that enum or rules refuse, in a sentence that demands values or lists theirs."""
    if not facts.values:
        return None
    taken = {_spoken(str(value)) for value in facts.values}
    demands = _says("demands").search(sentence) and not _says("negates a value").search(sentence)
    quoted = (one[1] or one[2] for one in (_QUOTED.finditer(sentence) if demands else ()))
    for value in (*_listed(sentence, taken), *quoted):
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            listed = ", ".join(map(str, facts.values[:8]))
            return "value_contradicted", {"found": value, "listed": listed}
    return None


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


@cache
def _common() -> frozenset[str]:
    return frozenset(terms(" ".join(sections("common_words")[""])))


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_says("list starts").split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _says("between values").split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            yield from (
                one
                for one in items
                if _BARE.match(one) and (one.isdigit() or not _common().issuperset(terms(one)))
            )


def _presence(sentence: str, facts: _Facts) -> _Found | None:
    """An optional parameter called required, or the other way round; conditions are for rules."""
    required, optional = _says("required").search(sentence), _says("optional").search(sentence)
    found = optional or required
    if found is None or facts.is_required is None:
        return None
    if _says("negated").search(sentence[: found.start()]):
        return None
    if optional is not None and facts.is_required:
        return "presence_contradicted", {"called": "optional", "declared": "required"}
    if optional is None and not (facts.is_required or _says("conditions").search(sentence)):
        return "presence_contradicted", {"called": "required", "declared": "optional"}
    return None


def _type(sentence: str, facts: _Facts) -> _Found | None:
    """Another type than the schema has."""
    if not facts.types or _says("about parts").search(sentence):
        return None
    kinds = patterns("kinds").items()
    claimed = [what for what, looked_for in kinds if looked_for.search(sentence)]
    if not claimed or any(facts.types & _TAKEN[what] for what in claimed):
        return None
    declared = ", ".join(sorted(facts.types))
    return "type_contradicted", {"called": claimed[0], "declared": declared}


def _limit(sentence: str, facts: _Facts) -> _Found | None:
    """A limit that schema and rules have otherwise."""
    if not facts.limits or not any(map(str.isdigit, sentence)):
        return None
    known = facts.numbers | {limit + step for limit in facts.limits for step in (-1, 1)}
    stated = _says("explained").sub("", sentence)
    for match in islice(matches(_says("limits"), stated), _MOST_MATCHES):
        wrong = [number for number in match.groups() if number and not readings_of(number) & known]
        if wrong:
            return "bounds_contradicted", {"found": wrong[0]}
    return None
